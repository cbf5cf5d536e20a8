/** What is left of a round of faults in the database, against what clients were told and instances were called for. */
import { createHash } from 'node:crypto';
import type { Run } from '../../src/contracts/run.ts';
import type { Db } from '../../src/db/connect.ts';
import { toOpaqueKey } from '../../src/services/routing/opaque-key.ts';
import { findDrift } from '../../test/support/invariants.ts';
import type { Api } from '../package/api.ts';

interface KeyCharges {
  readonly key: string;
  /** Attempts whose answer was taken. */
  readonly answered: number;
  /** Attempts that nobody knows the end of: charged as estimated. */
  readonly lost: number;
  readonly charged: number;
  /** Settlements in the ledger. */
  readonly settlements: number;
}

/** A row without a run prevents a claim whose answer never came: nothing was sent for it. */
const chargesByKey = `
  select a.key, count(*) filter (where a.state = 'settled' and a.ambiguity = 'answered')::int as answered,
    count(*) filter (where a.state = 'lost' and a.settled_nano > 0)::int as lost,
    count(*) filter (where a.settled_nano > 0)::int as charged,
    sum((select count(*) from ledger_entry l where l.attempt_id = a.attempt_id and l.kind = 'settle'))::int as settlements
  from attempt a where a.run_id is not null group by a.key`;

export interface Verdict {
  readonly lines: readonly string[];
  /** What does not hold; none is as it must be. */
  readonly breaches: readonly string[];
}

/** @returns a line for each run that is not right */
async function findWrongRuns(api: Api, runs: ReadonlyMap<string, number>): Promise<string[]> {
  const wrong: string[] = [];
  for (const [id, n] of runs) {
    const { body } = await api.request<Run>('GET', `/v1/runs/${id}`);
    const given = (body.output as { n?: number } | null)?.n;
    if (body.state !== 'succeeded' || given !== n + 3)
      wrong.push(`run ${id}: ${body.state}, ${given}, not ${n + 3}`);
  }
  return wrong;
}

/** @returns a line for each file that does not come back as it was sent */
async function findWrongFiles(api: Api, files: ReadonlyMap<string, string>): Promise<string[]> {
  const wrong: string[] = [];
  for (const [path, sent] of files) {
    const bytes = await api.readBytes(path);
    if (createHash('sha256').update(bytes).digest('hex') !== sent)
      wrong.push(`${path}: other bytes than sent`);
  }
  return wrong;
}

async function readReserved(db: Db): Promise<string> {
  const { rows } = await db.raw<{ rows: [{ sum: string }] }>(
    'select coalesce(sum(reserved_nano), 0)::text as sum from budget',
  );
  return rows[0].sum;
}

function describeWrong({ key, answered, charged, lost, settlements }: KeyCharges): string {
  return `${key}: ${answered} answers taken, ${charged} charges, ${lost} of them lost calls, ${settlements} settlements`;
}

/** @param calls what came to instances, by the key that they see */
async function judgeCharges(db: Db, calls: ReadonlyMap<string, number>, expected: number) {
  const { rows } = await db.raw<{ rows: KeyCharges[] }>(chargesByKey);
  const wrong = rows.filter(
    ({ answered, charged, lost, settlements }) =>
      answered !== 1 || charged !== answered + lost || settlements !== charged,
  );
  const twice = rows.filter(({ charged }) => charged > 1);
  const calledTwice = rows.filter(({ key }) => (calls.get(toOpaqueKey(key)) ?? 0) > 1);
  return {
    lines: [
      `${rows.length} keys of paid steps (${expected} expected), ${rows.length - twice.length} charged once`,
      `${calledTwice.length} keys were called more than once, ${twice.length} are charged for a lost call beside the answered one, as estimated`,
    ],
    breaches: [
      ...(rows.length === expected ? [] : [`${rows.length} keys, not ${expected}`]),
      ...wrong.slice(0, 20).map(describeWrong),
    ],
  };
}

export interface Evidence {
  readonly api: Api;
  readonly db: Db;
  readonly runs: ReadonlyMap<string, number>;
  /** SHA-256 by path. */
  readonly files: ReadonlyMap<string, string>;
  readonly calls: ReadonlyMap<string, number>;
  readonly stepsPerRun: number;
}

export async function judge({ api, db, runs, files, calls, stepsPerRun }: Evidence): Promise<Verdict> {
  const wrongRuns = await findWrongRuns(api, runs);
  const charges = await judgeCharges(db, calls, runs.size * stepsPerRun);
  const wrongFiles = await findWrongFiles(api, files);
  const reserved = await readReserved(db);
  const drift = await findDrift(db);
  return {
    lines: [
      `${runs.size - wrongRuns.length} of ${runs.size} runs right, ${files.size - wrongFiles.length} of ${files.size} files`,
      ...charges.lines,
      `reserved ${reserved}, budgets that differ from their attempts ${drift.length}`,
    ],
    breaches: [
      ...wrongRuns.slice(0, 20),
      ...wrongFiles.slice(0, 20),
      ...charges.breaches,
      ...(reserved === '0' ? [] : [`${reserved} nano-USD are still reserved`]),
      ...drift,
    ],
  };
}
