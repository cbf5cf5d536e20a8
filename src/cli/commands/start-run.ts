/** `run` and `rerun`: a new run of a file or a stored pipeline, or of what an earlier run did. */
import { type Command, Option } from 'commander';
import { Priority } from '../../contracts/primitives.ts';
import { Run } from '../../contracts/run.ts';
import { RerunPreview } from '../../contracts/run-control.ts';
import { jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { addBudgetOption, collectPair, readDurationMs, resolveRunId, runPath } from '../input/arguments.ts';
import { prepareRun, readJob } from '../input/run-request.ts';
import type { Column } from '../render/print.ts';
import type { Shell } from '../shell.ts';
import { watchRun } from '../watch/watch-run.ts';

interface RunCommandOptions extends CommonOptions {
  readonly job?: string;
  readonly file?: Readonly<Record<string, string>>;
  readonly version?: string;
  readonly alias?: string;
  readonly bulk?: string;
  readonly watch?: boolean;
  readonly label?: Readonly<Record<string, string>>;
  readonly priority?: string;
  readonly budget?: number;
  readonly idempotencyKey?: string;
  readonly timeout?: number;
  /** true: the one beside the pipeline. */
  readonly mock?: string | true;
}

/** Options that need a server. */
const ofServer = [
  'file',
  'version',
  'alias',
  'bulk',
  'watch',
  'label',
  'priority',
  'budget',
  'idempotencyKey',
  'timeout',
] as const;

async function runMocked(
  target: string,
  mock: string | true,
  options: RunCommandOptions,
  shell: Shell,
): Promise<void> {
  const given = ofServer.find((name) => options[name] !== undefined);
  if (given !== undefined) throw new UsageError(`--${given} needs a server; it does not go with --mock`);
  const { runWithMocks } = await import('../input/mock-run.ts');
  await runWithMocks({ ...options, target, mock }, shell);
}

/** Options of a run by itself. */
const ofOne = ['job', 'file', 'watch', 'timeout'] as const;

async function runMany(
  session: Session,
  target: string,
  bulk: string,
  options: RunCommandOptions,
): Promise<void> {
  const given = ofOne.find((name) => options[name] !== undefined);
  if (given !== undefined) throw new UsageError(`--${given} is of one run; it does not go with --bulk`);
  const { runBulk } = await import('../input/bulk-run.ts');
  const { version, alias, priority, budget: budget_ceiling_usd, label: labels, idempotencyKey } = options;
  const request = { version, alias, priority, budget_ceiling_usd, labels };
  await runBulk(session, { target, bulk, idempotencyKey, request });
}

async function run(target: string, options: RunCommandOptions, shell: Shell): Promise<void> {
  if (options.mock !== undefined) return runMocked(target, options.mock, options, shell);
  const session = await openSession(options, shell);
  const { print, client, json } = session;
  if (options.bulk !== undefined) return runMany(session, target, options.bulk, options);
  const body = await prepareRun(session, {
    ...options,
    target,
    files: options.file ?? {},
    labels: options.label ?? {},
    budgetUsd: options.budget,
  });
  const { value, text } = await client.post('/v1/runs', Run, body);
  const watches = options.watch === true || options.timeout !== undefined;
  if (watches) {
    print.remark(`run ${value.run_id}`);
    return shell.exitWith(await watchRun(session, value.run_id, options.timeout));
  }
  if (json) return print.json(text);
  print.line(value.run_id);
  print.remark(
    `${value.pipeline}@${value.version} is ${value.state}; watch it: capstan show ${value.run_id} --watch`,
  );
}

const runExamples = `
With --watch it exits 0 when the run succeeded, 1 when it failed, 3 when it was cancelled, 2 when the
outcome is not known. A job mentions an uploaded file as media://job/NAME.
With --mock the same codes say how the run ended; if the file says what it expects, 0 and 1 say whether
it came so.

Examples:
  capstan run pipeline.yaml --mock mocks.yaml
  capstan run pipeline.yaml --job '{"clip": "media://job/a.mp4"}' --file a.mp4=./clip.mp4 --watch`;

export function registerRunCommand(program: Command, shell: Shell): void {
  const command = program
    .command('run')
    .description('start a run of a file or of a stored pipeline')
    .argument('<file|name>', 'YAML or JSON file, - for stdin, or a pipeline name')
    .option('-j, --job <job>', 'the job: a file, - for stdin, or inline JSON such as \'{"n": 1}\'')
    .option('-f, --file <name=path>', 'upload a local file to the job (repeatable)', collectPair)
    .option('-v, --version <version>', 'version of the stored pipeline (default: the latest)')
    .option('-a, --alias <alias>', 'name of a version of the stored pipeline, such as production')
    .option('-w, --watch', 'watch it to its end')
    .option('--timeout <duration>', 'watch it, but at most this long; the run goes on', readDurationMs)
    .option('-l, --label <name=value>', 'label the run (repeatable)', collectPair)
    .addOption(new Option('-p, --priority <priority>', 'who may wait').choices(Priority.options))
    .option('--idempotency-key <key>', 'the same key starts the run once')
    .option('--bulk <file>', 'a run of the stored pipeline for each line, which is a job (JSON); - for stdin')
    .option('--mock [file]', 'run it here, without a server, against mocks (default: mocks.yaml beside it)')
    .addHelpText('after', runExamples)
    .action((target: string, options: RunCommandOptions) => run(target, options, shell));
  addBudgetOption(command, 'the most that the whole run may cost');
  addCommonOptions(command);
}

interface RerunOptions extends CommonOptions {
  readonly from?: string;
  readonly onlyFailed?: boolean;
  readonly job?: string;
  readonly version?: string;
  readonly budget?: number;
  readonly preview?: boolean;
  readonly timeout?: number;
  readonly watch?: boolean;
  readonly idempotencyKey?: string;
}

const columns: readonly Column[] = [{ header: 'STEP' }, { header: '' }, { header: 'WHY', shrinks: true }];

function splitIds(text: string | undefined): string[] | undefined {
  const ids = text?.split(',').map((id) => id.trim());
  if (ids?.some((id) => id === '')) throw new UsageError('--from takes step ids, separated by commas');
  return ids;
}

async function toBody(session: Session, { job, ...options }: RerunOptions) {
  return {
    from: splitIds(options.from),
    only_failed: options.onlyFailed,
    job: job === undefined ? undefined : await readJob(session, { job, target: '' }),
    version: options.version,
    budget_ceiling_usd: options.budget,
  };
}

async function showPreview(session: Session, path: string, body: object): Promise<void> {
  const { client, print, json } = session;
  const { value, text } = await client.post(path, RerunPreview, jsonBody({ ...body, preview: true }));
  if (json) return print.json(text);
  const { style } = print;
  print.table(columns, [
    ...value.reused.map((id) => [id, style.dim('✓ kept'), '']),
    ...value.executed.map(({ id, reason }) => [id, style.cyan('● again'), reason]),
  ]);
}

async function rerun(reference: string, options: RerunOptions, shell: Shell): Promise<void> {
  const session = await openSession(options, shell);
  const { client, print, json } = session;
  const path = runPath(await resolveRunId(client, reference), '/rerun');
  const body = await toBody(session, options);
  if (options.preview === true) return showPreview(session, path, body);
  const { value, text } = await client.post(path, Run, jsonBody(body, options.idempotencyKey));
  if (options.watch === true || options.timeout !== undefined) {
    print.remark(`run ${value.run_id}`);
    return shell.exitWith(await watchRun(session, value.run_id, options.timeout));
  }
  if (json) return print.json(text);
  const kept = value.steps.filter(({ state }) => state === 'reused').length;
  print.line(value.run_id);
  print.remark(
    `${kept} of ${value.steps.length} results are kept; watch it: capstan show ${value.run_id} --watch`,
  );
}

const rerunExamples = `
Without --from and --only-failed every step happens again. A result is kept only if its step, the values of
the job that it mentions and all that it depends on are the same, and the files that it names are there.

Example:
  capstan rerun @latest --only-failed --preview`;

export function registerRerunCommand(program: Command, shell: Shell): void {
  const command = program
    .command('rerun')
    .description('run once more, keeping the results that still hold')
    .argument('<run>', 'run id, or @latest')
    .option(
      '--from <ids>',
      'these steps and all that depends on them happen again; others keep their results',
    )
    .option('--only-failed', 'steps that succeeded keep their results')
    .option('-j, --job <job>', 'another job: a file, - for stdin, or inline JSON')
    .option('-v, --version <version>', 'another version of the stored pipeline')
    .option('--preview', 'only say which steps would happen again, and why')
    .option('-w, --watch', 'watch it to its end; exits like run --watch')
    .option('--timeout <duration>', 'watch it, but at most this long; the run goes on', readDurationMs)
    .option('--idempotency-key <key>', 'the same key starts the run once')
    .addHelpText('after', rerunExamples)
    .action((reference: string, options: RerunOptions) => rerun(reference, options, shell));
  addBudgetOption(command, 'the most that the new run may cost (default: as the run that it repeats)');
  addCommonOptions(command);
}
