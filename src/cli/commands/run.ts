import { type Command, Option } from 'commander';
import { Priority } from '../../contracts/primitives.ts';
import { Run } from '../../contracts/run.ts';
import { collectPair, readDurationMs, readUsd } from '../option-values.ts';
import { prepareRun } from '../run-request.ts';
import { addCommonOptions, type CommonOptions, openSession } from '../session.ts';
import type { Shell } from '../shell.ts';
import { watchRun } from '../watch/watch-run.ts';

interface RunOptions extends CommonOptions {
  readonly job?: string;
  readonly file?: Readonly<Record<string, string>>;
  readonly version?: string;
  readonly watch?: boolean;
  readonly label?: Readonly<Record<string, string>>;
  readonly priority?: string;
  readonly budget?: number;
  readonly idempotencyKey?: string;
  readonly timeout?: number;
}

const run = async (target: string, options: RunOptions, shell: Shell): Promise<void> => {
  const session = await openSession(options, shell);
  const { print, client, json } = session;
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
};

const example = `
With --watch it exits 0 when the run succeeded, 1 when it failed, 3 when it was cancelled, 2 when the
outcome is not known. A job mentions an uploaded file as media://job/NAME.

Example:
  capstan run pipeline.yaml --job '{"clip": "media://job/a.mp4"}' --file a.mp4=./clip.mp4 --watch`;

export const registerRunCommand = (program: Command, shell: Shell): void => {
  const command = program
    .command('run')
    .description('start a run of a file or of a stored pipeline')
    .argument('<file|name>', 'YAML or JSON file, - for stdin, or a pipeline name')
    .option('-j, --job <job>', 'the job: a file, - for stdin, or inline JSON such as \'{"n": 1}\'')
    .option('-f, --file <name=path>', 'upload a local file to the job (repeatable)', collectPair)
    .option('-v, --version <version>', 'version of the stored pipeline (default: the latest)')
    .option('-w, --watch', 'watch it to its end')
    .option('--timeout <duration>', 'watch it, but at most this long; the run goes on', readDurationMs)
    .option('-l, --label <name=value>', 'label the run (repeatable)', collectPair)
    .addOption(new Option('-p, --priority <priority>', 'who may wait').choices(Priority.options))
    .option('--budget <usd>', 'the most that one call may cost', readUsd)
    .option('--idempotency-key <key>', 'the same key starts the run once')
    .addHelpText('after', example)
    .action((target: string, options: RunOptions) => run(target, options, shell));
  addCommonOptions(command);
};
