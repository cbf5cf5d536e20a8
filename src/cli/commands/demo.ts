/**
 * `capstan demo`: the whole product in one command: the embedded stack, real media, a pipeline through the router,
 * and what came out of it, where, by whom and for how much.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { Run } from '../../contracts/run.ts';
import type { StackFile } from '../../contracts/stack.ts';
import type { Stack } from '../../dev/stack.ts';
import { showDemoResult } from '../demo-result.ts';
import { prepareRun } from '../run-request.ts';
import { openSession, type Session } from '../session.ts';
import type { Shell } from '../shell.ts';
import { stackSignal, untilAborted } from '../stack-signal.ts';
import { watchRun } from '../watch/watch-run.ts';

interface DemoOptions {
  readonly data: string;
  readonly ephemeral: boolean;
  readonly exit: boolean;
}

const example = (file: string): string =>
  fileURLToPath(new URL(`../../../examples/highlight-reel/${file}`, import.meta.url));

/** @returns the run's exit code */
const runExample = async (session: Session, info: StackFile): Promise<number> => {
  const { makeDemoMedia } = await import('../../dev/demo-media.ts');
  const { findCacheDir } = await import('../../dev/temporal/source.ts');
  const folder = await mkdtemp(join(tmpdir(), 'capstan-demo-'));
  try {
    session.print.line('Making two clips and a music bed with ffmpeg');
    const { files } = await makeDemoMedia(folder, findCacheDir(session.shell.environment, homedir()));
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
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const withStack = async (
  options: DemoOptions,
  shell: Shell,
  use: (stack: Stack, signal: AbortSignal) => Promise<void>,
): Promise<void> => {
  const { startStack } = await import('../../dev/stack.ts');
  const { createPrinter } = await import('../../dev/printer.ts');
  const signal = stackSignal();
  const printer = createPrinter(process.stdout);
  const { data: dataDir, ephemeral } = options;
  try {
    const environment = shell.environment;
    const report = printer.report;
    const stack = await startStack({
      ...{ dataDir, ephemeral, samples: true, port: null, environment, report, signal },
    });
    try {
      await use(stack, signal);
    } finally {
      await stack.stop();
    }
  } finally {
    printer.close();
  }
};

const runDemo = (options: DemoOptions, shell: Shell): Promise<void> =>
  withStack(options, shell, async ({ info }, signal) => {
    const session = await openSession({ url: info.api_url, key: info.api_key }, shell);
    shell.exitWith(await runExample(session, info));
    if (options.exit) return;
    session.print.line('Ctrl-C stops everything.');
    await untilAborted(signal);
  });

export const registerDemoCommand = (program: Command, shell: Shell): void => {
  program
    .command('demo')
    .description('start everything and run a media pipeline through it')
    .option('--data <dir>', 'folder that keeps all data', '.capstan')
    .option('--ephemeral', 'keep the data in a temporary folder and remove it at the end', false)
    .option('--exit', 'end by itself when the run has ended', false)
    .action((options: DemoOptions) => runDemo(options, shell));
};
