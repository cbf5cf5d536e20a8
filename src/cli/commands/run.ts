import { type Command, Option } from 'commander';
import { Priority } from '../../contracts/primitives.ts';
import { Run } from '../../contracts/run.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { addBudgetOption, collectPair, readDurationMs } from '../input/option-values.ts';
import { prepareRun } from '../input/run-request.ts';
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

const example = `
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
    .addHelpText('after', example)
    .action((target: string, options: RunCommandOptions) => run(target, options, shell));
  addBudgetOption(command, 'the most that the whole run may cost');
  addCommonOptions(command);
}
