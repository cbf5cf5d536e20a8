/**
 * The evidence of a round of faults: the answers to clients, the journals of instances, and the rows of runs, attempts,
 * budgets and ledger, compared with each other and with the expected result.
 */
import { createHash } from 'node:crypto';
import type { Run } from '@capstan/core/contracts/run';
import type { Db } from '../../src/db/connect.ts';
import { findViolations } from '../../test/support/invariants.ts';
import type { Api } from '../package/api.ts';
import { type Dag, modelOf } from './dag.ts';
import type { Fleet } from './fleet.ts';
import { checkJournal } from './journal-check.ts';
import type { Submissions } from './submissions.ts';
import { joinVerdicts, type Verdict } from './verdict.ts';

export interface Evidence {
  readonly api: Api;
  readonly db: Db;
  readonly fleet: Fleet;
  readonly pipeline: string;
  readonly dag: Dag;
  readonly submissions: Submissions;
  /** Whether runs were cancelled: those have no output. */
  readonly withCancels?: boolean;
}

interface StepCharges {
  readonly name: string;
  readonly state: string;
  /** Attempts whose answer was accepted. */
  readonly answered: number;
  /** Attempts without a known outcome: charged as estimated. */
  readonly lost: number;
  readonly charged: number;
  readonly settlements: number;
}

const chargesByStep = `
  select s.run_id || ' ' || s.step_id as name, s.state,
    count(*) filter (where a.state = 'settled' and a.ambiguity = 'answered')::int as answered,
    count(*) filter (where a.state = 'lost' and a.settled_nano > 0)::int as lost,
    count(*) filter (where a.settled_nano > 0)::int as charged,
    coalesce(sum((select count(*) from ledger_entry l where l.attempt_id = a.attempt_id and l.kind = 'settle')), 0)::int
      as settlements
  from step s join run r using (run_id) left join attempt a on a.run_id = s.run_id and a.step_id = s.step_id
  where r.pipeline = ? group by s.run_id, s.step_id, s.state`;

/** One charge for a step that has succeeded, none for another; and each lost call beside it, as estimated. */
function isCharged({ state, answered, lost, charged, settlements }: StepCharges): boolean {
  const isRight = state === 'succeeded' ? answered === 1 : answered <= 1;
  return isRight && charged === answered + lost && settlements === charged;
}

function describeCharges({ name, state, answered, lost, charged, settlements }: StepCharges): string {
  return `step ${name} (${state}): ${answered} answers taken, ${charged} charges, ${lost} of them lost calls, ${settlements} settlements`;
}

async function judgeCharges({ db, pipeline }: Evidence): Promise<Verdict> {
  const { rows } = await db.raw<{ rows: StepCharges[] }>(chargesByStep, [pipeline]);
  const wrong = rows.filter((row) => !isCharged(row));
  const doubled = rows.filter(({ answered }) => answered > 1);
  const lost = rows.reduce((sum, row) => sum + row.lost, 0);
  return {
    figures: { 'steps charged twice': doubled.length, 'lost calls booked as estimated': lost },
    breaches: wrong.map(describeCharges),
  };
}

interface EndedRun extends Pick<Run, 'run_id' | 'state'> {
  readonly output: { readonly h?: string } | null;
}

function describeRun({ run_id, state, output }: EndedRun, n: number): string {
  return `run ${run_id} (${n}): ${state}, ${JSON.stringify(output)}`;
}

async function judgeRuns({ db, dag, pipeline, submissions, withCancels }: Evidence): Promise<Verdict> {
  const rows: EndedRun[] = await db('run').where({ pipeline }).select('run_id', 'state', 'output');
  const last = dag.at(-1)?.id ?? '';
  const { runs } = submissions;
  const breaches: string[] = [];
  let right = 0;
  for (const row of rows) {
    const n = runs.get(row.run_id);
    if (n === undefined) breaches.push(`run ${row.run_id} is of no submission that was taken`);
    else if (withCancels === true && row.state === 'cancelled') right += 1;
    else if (row.state === 'succeeded' && row.output?.h === modelOf(dag, n).get(last)) right += 1;
    else breaches.push(describeRun(row, n));
  }
  if (rows.length !== runs.size)
    breaches.push(`${runs.size} submissions were taken, there are ${rows.length} runs`);
  return { figures: { 'runs accepted': runs.size, 'runs correct': right }, breaches };
}

/** @returns a line for each file that does not come back as it was sent */
async function findWrongFiles({ api, submissions }: Evidence): Promise<string[]> {
  const wrong: string[] = [];
  for (const [path, sent] of submissions.files) {
    const bytes = await api.readBytes(path);
    if (createHash('sha256').update(bytes).digest('hex') !== sent)
      wrong.push(`${path}: other bytes than sent`);
  }
  return wrong;
}

async function findReserved(db: Db): Promise<string[]> {
  const [row] = await db('budget').sum({ nano: 'reserved_nano' });
  const reserved = Number(row?.nano ?? 0);
  return reserved === 0 ? [] : [`${reserved} nano-USD are still reserved`];
}

/** Both sides of the submissions: no accepted one is lost, and most were accepted. */
function judgeSubmissions({ submissions }: Evidence): Verdict {
  const { runs, files, failed, retried } = submissions;
  const isTrivial = runs.size < failed.length;
  return {
    figures: {
      'submissions failed': failed.length,
      'requests retried': retried.length,
      ...(files.size === 0 ? {} : { files: files.size }),
    },
    breaches: [
      ...failed.map((reason) => `a submission failed: ${reason}`),
      ...(isTrivial ? [`of ${runs.size + failed.length} submissions only ${runs.size} were taken`] : []),
    ],
  };
}

/** When all runs have ended. */
export async function judge(evidence: Evidence): Promise<Verdict> {
  const { db, fleet, dag, submissions } = evidence;
  const charges = await judgeCharges(evidence);
  const runs = await judgeRuns(evidence);
  const journal = checkJournal(fleet.lines, dag, [...submissions.runs.values()]);
  const rows = [
    ...(await findWrongFiles(evidence)),
    ...(await findReserved(db)),
    ...(await findViolations(db, [fleet])),
  ];
  const all = [judgeSubmissions(evidence), runs, journal, charges, { figures: {}, breaches: rows }];
  return joinVerdicts(all);
}
