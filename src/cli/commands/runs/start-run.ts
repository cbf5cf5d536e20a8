/** `run` and `rerun`: a new run of a file or a stored pipeline, or a repetition of an earlier run. */
import { randomUUID } from 'node:crypto';
import { Priority } from '@capstan/core/contracts/primitives';
import { Run } from '@capstan/core/contracts/run';
import { BulkAnswer, RerunPreview } from '@capstan/core/contracts/run-control';
import { batchLabel, scopeOfBatch } from '@capstan/core/money/scoped-budget';
import { jsonBody, path } from '../../client/api-client.ts';
import type { Session } from '../../client/session.ts';
import { oneOf, parsed, procedure, type Term } from '../../command.ts';
import { exitCodes, UsageError } from '../../errors.ts';
import {
  budgetOption,
  collectPair,
  isFileArgument,
  jobHelp,
  parseJsonInput,
  readDurationMs,
  readSource,
  readUsd,
  resolveRunId,
} from '../../input/arguments.ts';
import { meansMany, type RunFilterGiven, runFilterOptions } from '../../input/run-filter.ts';
import { prepareRun, readJob } from '../../input/run-request.ts';
import type { Columns, Style } from '../../render/print.ts';
import type { Shell } from '../../shell.ts';
import { watchRun } from '../../watch/watch-run.ts';
import { changeMany, watchMany } from './many-runs.ts';

interface RunGiven {
  readonly 'file|name': string;
  readonly job?: string;
  readonly file?: Readonly<Record<string, string>>;
  readonly version?: string;
  readonly alias?: string;
  readonly bulk?: string;
  readonly watch?: boolean;
  readonly label?: Readonly<Record<string, string>>;
  readonly priority?: string;
  readonly budget?: number;
  readonly budgetAll?: number;
  readonly idempotencyKey?: string;
  readonly timeout?: number;
  /** true: the mocks file beside the pipeline. */
  readonly mock?: string | true;
}

/** Options that require a server. */
const ofServer = [
  'file',
  'version',
  'alias',
  'bulk',
  'watch',
  'label',
  'priority',
  'budget',
  'budgetAll',
  'idempotencyKey',
  'timeout',
] as const;

/** `idempotency-key` */
function toOption(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Runs without a server. */
async function runMocked(mock: string | true, options: RunGiven, shell: Shell): Promise<true> {
  const given = ofServer.find((name) => options[name] !== undefined);
  if (given !== undefined)
    throw new UsageError(`--${toOption(given)} needs a server; it does not go with --mock`);
  const { runWithMocks } = await import('../../input/mock-run.ts');
  await runWithMocks({ ...options, target: options['file|name'], mock }, shell);
  return true;
}

const mockOption: Term<string | true | undefined> = {
  about: 'run it here, without a server, against mocks (default: mocks.yaml beside it)',
};

// Many runs of one stored pipeline: one job per line, sent in batches of a thousand.

interface BulkArguments {
  /** Name of a stored pipeline. */
  readonly target: string;
  /** Path of the jobs, or `-`. */
  readonly bulk: string;
  readonly idempotencyKey?: string | undefined;
  /** The most that all of them may cost together. */
  readonly budgetAllUsd?: number | undefined;
  /** Fields common to all runs. */
  readonly request: { readonly labels?: Readonly<Record<string, string>> | undefined };
}

const atOnce = 1_000;

interface Line {
  /** `jobs.jsonl, line 7` */
  readonly place: string;
  readonly job: unknown;
}

interface Lines {
  readonly jobs: readonly Line[];
  /** Number of lines with invalid JSON; each has been reported. */
  readonly broken: number;
}

async function readJobs({ shell, print }: Session, path: string): Promise<Lines> {
  const { name, text } = await readSource(path, shell.stdin);
  const jobs: Line[] = [];
  let broken = 0;
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const place = `${name}, line ${index + 1}`;
    try {
      jobs.push({ place, job: parseJsonInput(place, line) });
    } catch (fault) {
      print.remark(fault instanceof Error ? fault.message : String(fault));
      broken++;
    }
  }
  if (jobs.length === 0) throw new UsageError(`${name} holds no job; write one JSON object per line`);
  return { jobs, broken };
}

/** Names the first line of each reason, and at the end how many more have the same. */
function createRefusals(say: (text: string) => void) {
  const seen = new Map<string, number>();
  return {
    note: (place: string, reason: string): void => {
      const count = seen.get(reason) ?? 0;
      seen.set(reason, count + 1);
      if (count === 0) say(`${place}: ${reason}`);
    },
    end: (): void => {
      for (const [reason, count] of seen) if (count > 1) say(`and ${count - 1} more: ${reason}`);
    },
  };
}

/** Prints the id of each started run, and the error of each refused one. */
async function runBulk(
  session: Session,
  given: BulkArguments,
): Promise<{ started: number; refused: number }> {
  const { client, print, json } = session;
  if (await isFileArgument(given.target)) {
    throw new UsageError(`--bulk goes with the name of a stored pipeline; ${given.target} is a file`);
  }
  const { jobs, broken } = await readJobs(session, given.bulk);
  let [refused, before] = [broken, 0];
  const refusals = createRefusals(print.remark);
  let batch: string | undefined;
  for (let at = 0; at < jobs.length; at += atOnce) {
    const lines = jobs.slice(at, at + atOnce);
    const labels =
      batch === undefined ? given.request.labels : { ...given.request.labels, [batchLabel]: batch };
    const runs = lines.map(({ job }) => ({ pipeline: given.target, ...given.request, labels, job }));
    const budget_all_usd = batch === undefined ? given.budgetAllUsd : undefined; // later lines join the first ones
    const key = given.idempotencyKey === undefined ? undefined : `${given.idempotencyKey}.${at / atOnce}`;
    const body = jsonBody({ runs, budget_all_usd }, key);
    const { value, text, isReplayed = false } = await client.post('/v1/runs/bulk', BulkAnswer, body);
    batch ??= value.batch;
    const accepted = value.items.filter(({ run_id }) => run_id !== undefined).length;
    refused += value.items.length - accepted;
    if (isReplayed) before += accepted;
    if (json) {
      print.json(text);
      continue;
    }
    for (const [index, { run_id, error }] of value.items.entries()) {
      if (run_id !== undefined) print.line(run_id);
      else refusals.note(lines[index]?.place ?? '', `${error?.code}: ${error?.detail}`);
    }
  }
  refusals.end();
  const all = jobs.length + broken;
  print.remark(`${all - refused - before} of ${all} runs were started${describeBefore(before)}`);
  if (batch !== undefined) print.remark(describeBatch(batch, given.budgetAllUsd));
  return { started: all - refused, refused };
}

/** @param count runs of an earlier request with the same key */
function describeBefore(count: number): string {
  return count === 0 ? '' : `; ${count} ${count === 1 ? 'was' : 'were'} started before with this key`;
}

function describeBatch(batch: string, limitUsd = 0): string {
  const scope = scopeOfBatch(batch);
  return `together they may cost ${limitUsd} USD; to change it: capstan budgets put ${scope} --period total --limit-usd USD`;
}

/** Options that only apply to a single run. */
const ofOne = ['job', 'file', 'timeout'] as const;

const filesOfMany =
  '--file is for one run; for --bulk, upload files first: capstan media new FILES prints their references for the lines';

async function runMany(session: Session, bulk: string, options: RunGiven): Promise<void> {
  const given = ofOne.find((name) => options[name] !== undefined);
  if (given === 'file') throw new UsageError(filesOfMany);
  if (given !== undefined) throw new UsageError(`--${given} is of one run; it does not go with --bulk`);
  const { version, alias, priority, budget: budget_ceiling_usd, budgetAll, idempotencyKey } = options;
  const { watch = false } = options;
  // The runs of a watched file are found again by a label, the same for the same key.
  const mark = watch ? (idempotencyKey ?? randomUUID().slice(0, 8)) : undefined;
  const labels = mark === undefined ? options.label : { ...options.label, bulk: mark };
  const request = { version, alias, priority, budget_ceiling_usd, labels };
  const target = options['file|name'];
  const { started, refused } = await runBulk(session, {
    target,
    bulk,
    idempotencyKey,
    budgetAllUsd: budgetAll,
    request,
  });
  const code = mark === undefined || started === 0 ? exitCodes.ok : await watchMany(session, `bulk=${mark}`);
  session.shell.exitWith(code === exitCodes.ok && refused > 0 ? exitCodes.failed : code);
}

async function startRun(session: Session, options: RunGiven): Promise<void> {
  const { print, client, json } = session;
  const { 'file|name': target, bulk, timeout } = options;
  if (bulk !== undefined) return runMany(session, bulk, options);
  if (options.budgetAll !== undefined)
    throw new UsageError('--budget-all goes with --bulk; one run has --budget');
  const body = await prepareRun(session, {
    ...options,
    target,
    files: options.file ?? {},
    labels: options.label ?? {},
    budgetUsd: options.budget,
  });
  const { value, text, isReplayed = false } = await client.post('/v1/runs', Run, body);
  if (isReplayed) print.remark(startedBefore);
  if (options.watch === true || timeout !== undefined) return watchToEnd(session, value, timeout);
  if (json) return print.json(text);
  print.line(value.run_id);
  print.remark(
    `${value.pipeline}@${value.version} is ${value.state}; watch it: capstan show ${value.run_id} --watch`,
  );
}

const startedBefore = 'the run was started before with this key';

async function watchToEnd(session: Session, { run_id }: Run, timeoutMs?: number): Promise<void> {
  session.print.remark(`run ${run_id}`);
  session.shell.exitWith(await watchRun(session, run_id, timeoutMs));
}

export const registerRunCommand = procedure('run', {
  about: 'start a run of a file or of a stored pipeline',
  help: `
With --watch it exits 0 when the run succeeded, 1 when it failed, 3 when it was cancelled, 2 when the
outcome is unknown. A job mentions an uploaded file as media://job/NAME.
Pipelines beside the file that its steps run are stored first, and the command lists them. It refuses a
version that is stored with different content.
With --mock the codes have the same meaning. If the file of mocks has expectations, 0 means that the run met
them, and 1 that it did not.

Examples:
  capstan run pipeline.yaml --mock mocks.yaml
  capstan run pipeline.yaml --job '{"clip": "media://job/a.mp4"}' --file a.mp4=./clip.mp4 --watch`,
  args: { '<file|name>': 'YAML or JSON file, - for stdin, or a pipeline name' },
  options: {
    '-j, --job <job>': jobHelp,
    '-f, --file <name=path>': parsed('upload a local file to the job (repeatable)', collectPair),
    '-v, --version <version>': 'version of the stored pipeline (default: the latest)',
    '-a, --alias <alias>': 'name of a version of the stored pipeline, such as production',
    '-w, --watch': 'watch it to its end; with --bulk all of them, under the label bulk',
    '--timeout <duration>': parsed('watch it, but at most this long; the run continues', readDurationMs),
    '-l, --label <name=value>': parsed('label the run (repeatable)', collectPair),
    '-p, --priority <priority>': oneOf('who may wait', Priority.options),
    '--idempotency-key <key>': 'the same key starts the run once',
    '--bulk <file>': 'a run of the stored pipeline for each line, which is a job (JSON); - for stdin',
    '--mock [file]': mockOption,
    '--budget <usd>': budgetOption('the most that the whole run may cost'),
    '--budget-all <usd>': parsed('with --bulk: the most that all runs may cost together', readUsd),
  },
  before: (options, shell) => (options.mock === undefined ? false : runMocked(options.mock, options, shell)),
  run: startRun,
});

interface PreviewRow {
  /** `clips/3 › send`: step send of the child run of the third item of clips */
  readonly id: string;
  readonly what: 'kept' | 'skipped' | 'again';
  /** `7 of 200 items` */
  readonly count?: string;
  readonly reason?: string;
}

type KeptSteps = Pick<RerunPreview, 'reused' | 'skipped' | 'executed'>;

const previewTable: Columns<PreviewRow> = [
  ['STEP', 'id'],
  ['', ({ what, count }, { style }) => showWhat[what](style, count)],
  ['WHY', 'reason', 'shrinks'],
];

const showWhat: Record<PreviewRow['what'], (style: Style, count?: string) => string> = {
  kept: (style) => style.dim('✓ kept'),
  skipped: (style) => style.dim('– skipped'),
  again: (style, count) => style.cyan(`● ${count ?? 'again'}`),
};

function listExecuted({ executed }: KeptSteps, above: string): PreviewRow[] {
  return executed.map(({ id, reason, items }) => {
    const row = { id: `${above}${id}`, what: 'again', reason } as const;
    if (items === undefined) return row;
    const { all, kept, repeated } = items;
    const which = kept === 0 || repeated === '' ? '' : `; items ${repeated}`;
    return { ...row, count: `${all - kept} of ${all} items`, reason: `${reason}${which}` };
  });
}

/** Steps of the run, then those that child runs repeat. */
function listPreview(preview: RerunPreview): PreviewRow[] {
  return [
    ...preview.reused.map((id) => ({ id, what: 'kept' }) as const),
    ...preview.skipped.map((id) => ({ id, what: 'skipped' }) as const),
    ...listExecuted(preview, ''),
    ...preview.runs.flatMap((run) => listExecuted(run, `${run.place} › `)),
  ];
}

function describeCalls({ min, max }: RerunPreview['calls']): string {
  const calls = (count: number): string => `${count} ${count === 1 ? 'call' : 'calls'}`;
  if (max === null) return `at least ${calls(min)} of capabilities`;
  return min === max ? `${calls(max)} of capabilities` : `${min} to ${calls(max)} of capabilities`;
}

function splitIds(text: string | undefined): string[] | undefined {
  const ids = text?.split(',').map((id) => id.trim());
  if (ids?.some((id) => id === '')) throw new UsageError('--from takes step ids, separated by commas');
  return ids;
}

async function showPreview({ client, print, json }: Session, to: string, body: object): Promise<void> {
  const { value, text } = await client.post(to, RerunPreview, jsonBody({ ...body, preview: true }));
  if (json) return print.json(text);
  print.table(previewTable, listPreview(value));
  print.remark(describeCalls(value.calls));
}

interface ManyGiven extends RunFilterGiven {
  readonly preview?: boolean | undefined;
  readonly watch?: boolean | undefined;
  readonly timeout?: number | undefined;
  readonly idempotencyKey?: string | undefined;
}

function rerunMany(session: Session, body: { readonly from?: unknown }, given: ManyGiven): Promise<void> {
  const { preview: isPreview, watch, timeout, idempotencyKey } = given;
  if (body.from !== undefined)
    throw new UsageError('--from names steps of one run; it does not go with filters');
  if (watch === true || timeout !== undefined) {
    throw new UsageError('--watch is for one run; follow many by `capstan count --label …`');
  }
  return changeMany(session, { act: 'rerun', given, body, idempotencyKey, isPreview });
}

export const registerRerunCommand = procedure('rerun', {
  about: 'run again, and keep the results that are still valid',
  help: `
Without --from and --only-failed, every step runs again. A result is kept only if its step, its dependencies and
the values of the job that it mentions are the same. The files that it names must exist.
With --only-failed, items of a for_each that succeeded are kept, and child runs continue where they failed.

Filters choose many runs instead of one. With --idempotency-key, each of them runs again once for the key.

Examples:
  capstan rerun @latest --only-failed --preview
  capstan rerun --label batch=7 --state failed --only-failed --budget 2.50`,
  args: { '[run]': 'run id, or @latest; or filters choose many' },
  options: {
    ...runFilterOptions,
    '--from <ids>': 'these steps and all that depends on them happen again; others keep their results',
    '--only-failed':
      'steps and items that succeeded keep their results; child runs continue where they failed',
    '-j, --job <job>': 'another job: a file, - for stdin, or inline JSON',
    '-v, --version <version>': 'another version of the stored pipeline',
    '--look-up-aliases':
      'look up aliases of child pipelines again (default: the versions of the repeated run)',
    '--priority <priority>': oneOf('who may wait (default: as the run that it repeats)', Priority.options),
    '--preview': 'only list the steps that would happen again, and why',
    '-w, --watch': 'watch it to its end; exits like run --watch',
    '--timeout <duration>': parsed('watch it, but at most this long; the run continues', readDurationMs),
    '--idempotency-key <key>': 'the same key starts the run once',
    '--budget <usd>': budgetOption(
      'the most that the new run may cost (default: as the run that it repeats)',
    ),
  },
  run: async (session, { run, job, from, onlyFailed, version, lookUpAliases, budget, priority, ...how }) => {
    const { client, print, json } = session;
    const body = {
      priority,
      from: splitIds(from),
      only_failed: onlyFailed,
      look_up_aliases: lookUpAliases,
      job: job === undefined ? undefined : await readJob(session, { job, target: '' }),
      version,
      budget_ceiling_usd: budget,
    };
    if (meansMany({ run, ...how })) return rerunMany(session, body, how);
    if (run === undefined) throw new UsageError('name a run, or choose runs by a filter such as --label');
    const to = path`/v1/runs/${await resolveRunId(client, run)}/rerun`;
    if (how.preview === true) return showPreview(session, to, body);
    const {
      value,
      text,
      isReplayed = false,
    } = await client.post(to, Run, jsonBody(body, how.idempotencyKey));
    const { watch, timeout } = how;
    if (isReplayed) print.remark(startedBefore);
    if (watch === true || timeout !== undefined) return watchToEnd(session, value, timeout);
    if (json) return print.json(text);
    const kept = value.steps.filter(({ state }) => state === 'reused').length;
    print.line(value.run_id);
    print.remark(
      `${kept} of ${value.steps.length} results are kept; watch it: capstan show ${value.run_id} --watch`,
    );
  },
});
