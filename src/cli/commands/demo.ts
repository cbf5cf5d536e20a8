/**
 * `capstan demo`: the whole product in one command: the embedded stack, real media, a pipeline through the router,
 * and what came out of it, where, by whom and for how much. `capstan demo learning` shows what becomes of a mistake.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Argument, type Command } from 'commander';
import { Run } from '../../contracts/run.ts';
import type { StackFile } from '../../contracts/stack.ts';
import type { Stack } from '../../dev/stack.ts';
import { dataFolder } from '../client/connection.ts';
import { openSession, type Session } from '../client/session.ts';
import { stackSignal, untilAborted } from '../client/stack-signal.ts';
import { showAddresses, showDemoResult } from '../demo/demo-result.ts';
import { exitCodes } from '../exit-codes.ts';
import { prepareRun } from '../input/run-request.ts';
import { packageFolder } from '../package-folder.ts';
import type { Shell } from '../shell.ts';
import { watchRun } from '../watch/watch-run.ts';

interface DemoOptions {
  readonly data?: string;
  readonly ephemeral: boolean;
  readonly exit: boolean;
}

function example(file: string): string {
  return join(packageFolder, 'examples/highlight-reel', file);
}

type ExampleFiles = Readonly<Record<string, string>>;
/** @returns the exit code */
type Scenario = (
  session: Session,
  files: ExampleFiles,
  stack: StackFile,
  signal: AbortSignal,
) => Promise<number>;

const runExample: Scenario = async (session, files, info) => {
  const body = await prepareRun(session, {
    target: example('pipeline.yaml'),
    job: example('job.json'),
    files,
    labels: { demo: 'highlight-reel' },
  });
  const { value: run } = await session.client.post('/v1/runs', Run, body);
  session.print.line(`Run ${run.run_id}`);
  const code = await watchRun(session, run.run_id);
  await showDemoResult(session, run.run_id, info);
  return code;
};

const learn: Scenario = async (session, files, info, signal) => {
  const { showLearning } = await import('../demo/learning-demo.ts');
  try {
    const holds = await showLearning(session, files, signal);
    await showAddresses(session, info);
    return holds ? exitCodes.ok : exitCodes.failed;
  } catch (thrown) {
    if (signal.aborted) return exitCodes.interrupted;
    throw thrown;
  }
};

const scenarios: Readonly<Record<string, Scenario>> = { 'highlight-reel': runExample, learning: learn };

async function withMedia(session: Session, use: (files: ExampleFiles) => Promise<number>): Promise<number> {
  const { makeDemoMedia } = await import('../../dev/demo-media.ts');
  const { findCacheDir } = await import('../../dev/temporal/source.ts');
  const folder = await mkdtemp(join(tmpdir(), 'capstan-demo-'));
  try {
    session.print.line('Making two clips and a music bed with ffmpeg');
    const { files } = await makeDemoMedia(folder, findCacheDir(session.shell.environment, homedir()));
    return await use(files);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function withStack(
  options: DemoOptions,
  shell: Shell,
  use: (stack: Stack, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { startStack } = await import('../../dev/stack.ts');
  const { createPrinter } = await import('../../dev/printer.ts');
  const signal = stackSignal();
  const printer = createPrinter(process.stdout);
  const { ephemeral } = options;
  const dataDir = dataFolder(options.data, shell.environment);
  try {
    const environment = shell.environment;
    const report = printer.report;
    const stack = await startStack({
      dataDir,
      ephemeral,
      samples: true,
      port: null,
      environment,
      report,
      signal,
    });
    try {
      await use(stack, signal);
    } finally {
      await stack.stop();
    }
  } finally {
    printer.close();
  }
}

function runDemo(name: string, options: DemoOptions, shell: Shell): Promise<void> {
  return withStack(options, shell, async ({ info }, signal) => {
    const session = await openSession({ url: info.api_url, key: info.api_key }, shell);
    const play = scenarios[name] ?? runExample;
    shell.exitWith(await withMedia(session, (files) => play(session, files, info, signal)));
    if (options.exit) return;
    session.print.line('Ctrl-C stops everything.');
    await untilAborted(signal);
  });
}

export function registerDemoCommand(program: Command, shell: Shell): void {
  program
    .command('demo')
    .description('start everything and run a media pipeline through it')
    .addArgument(
      new Argument('[scenario]', 'learning: a mistake is corrected once, then corrects itself')
        .choices(Object.keys(scenarios))
        .default('highlight-reel'),
    )
    .option('--data <dir>', 'folder that keeps all data (default: CAPSTAN_DATA, else .capstan)')
    .option('--ephemeral', 'keep the data in a temporary folder and remove it at the end', false)
    .option('--exit', 'end by itself when the run has ended', false)
    .action((name: string, options: DemoOptions) => runDemo(name, options, shell));
}
