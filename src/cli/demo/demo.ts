/**
 * `capstan demo`: the whole product in one command: the embedded stack, real media, and a pipeline through the router.
 * It then shows the video, its facts, and the instance and cost of each step. `capstan demo learning` (learning.ts)
 * shows how Capstan learns from a mistake.
 */

import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseMediaReference } from '@capstan/core/contracts/media';
import { Run } from '@capstan/core/contracts/run';
import type { StackFile } from '@capstan/core/contracts/stack';
import { z } from 'zod';
import type { Stack } from '../../dev/stack.ts';
import { dataFolder } from '../client/connection.ts';
import { linkToConsole, openSession, type Session } from '../client/session.ts';
import { local, oneOf, usually } from '../command.ts';
import { exitCodes } from '../errors.ts';
import { getRun } from '../input/arguments.ts';
import { prepareRun } from '../input/run-request.ts';
import { formatDuration, formatUsd } from '../render/formats.ts';
import { packageFolder, type Shell, stackSignal, untilAborted } from '../shell.ts';
import { watchRun } from '../watch/watch-run.ts';

// The result of the demo: the video, its facts, and the instance and cost of each step.

const Output = z.object({
  video: z.string(),
  cover: z.string(),
  duration_ms: z.number(),
  loudness_lufs: z.number(),
});

/** The local path of a media reference; the reference itself if the store is not on this disk. */
function locate(mediaUrl: string, reference: string): string {
  const path = parseMediaReference(reference);
  if (path === null || !mediaUrl.startsWith('file:///')) return reference;
  return join(fileURLToPath(mediaUrl), path.job_id, path.file);
}

async function showDemoResult(session: Session, runId: string, info: StackFile): Promise<void> {
  const { client, print } = session;
  const { value: run } = await getRun(client, runId);
  const output = Output.safeParse(run.output);
  if (output.success) {
    const { video, cover, duration_ms, loudness_lufs } = output.data;
    print.lines([
      '',
      `Video     ${locate(info.media_url, video)}`,
      `          ${formatDuration(duration_ms)} long, ${loudness_lufs} LUFS`,
      `Cover     ${locate(info.media_url, cover)}`,
    ]);
  }
  print.line('');
  for (const step of run.steps) {
    print.line(
      `${step.id.padEnd(9)} ${formatUsd(step.cost_usd)} by ${step.capability} at ${step.endpoint ?? '-'}`,
    );
  }
  print.line('');
  await showAddresses(session, info, `/runs/${runId}?view=output`);
}

/** @param place path of the link into the console */
async function showAddresses({ client, print }: Session, info: StackFile, place = '/'): Promise<void> {
  print.lines([
    `API          ${info.api_url}`,
    `API docs     ${info.api_url}/docs`,
    `Console      ${await linkToConsole(client, place)}`,
    `Temporal UI  ${info.temporal_ui_url ?? 'unknown'}`,
    '',
  ]);
}

interface DemoOptions {
  readonly data: string | undefined;
  readonly ephemeral: boolean;
  readonly exit: boolean;
}

function example(file: string): string {
  return join(packageFolder, 'examples/highlight-reel', file);
}

type ExampleFiles = Readonly<Record<string, string>>;

interface Stage {
  readonly files: ExampleFiles;
  readonly info: StackFile;
}

/** @returns the exit code */
type Scenario = (session: Session, stage: Stage, signal: AbortSignal) => Promise<number>;

const runExample: Scenario = async (session, { files, info }) => {
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

const learn: Scenario = async (session, { files, info }, signal) => {
  const { showLearning } = await import('./learning.ts');
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

/** The files stay in the data folder, for runs of the user's own. */
async function makeMedia({ print, shell }: Session, dataDir: string): Promise<ExampleFiles> {
  const { makeDemoMedia } = await import('../../dev/demo-media.ts');
  const { findCacheDir } = await import('../../dev/temporal/source.ts');
  const folder = join(dataDir, 'demo');
  await mkdir(folder, { recursive: true });
  print.line('Making two clips and a music bed with ffmpeg');
  return (await makeDemoMedia(folder, findCacheDir(shell.environment, homedir()))).files;
}

async function withStack(
  options: DemoOptions,
  shell: Shell,
  use: (stack: Stack, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { startStack } = await import('../../dev/stack.ts');
  const { createPrinter } = await import('../../dev/progress.ts');
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
  return withStack(options, shell, async ({ file, info }, signal) => {
    const session = await openSession({ url: info.api_url, key: info.api_key }, shell);
    const play = scenarios[name] ?? runExample;
    const files = await makeMedia(session, dirname(file));
    shell.exitWith(await play(session, { files, info }, signal));
    if (options.exit) return;
    session.print.line('Ctrl-C stops everything.');
    await untilAborted(signal);
  });
}

export const registerDemoCommand = local('demo', {
  about: 'start everything and run a media pipeline through it',
  args: {
    '[scenario]': oneOf(
      'learning: a mistake is corrected once, then corrects itself',
      Object.keys(scenarios),
      'highlight-reel',
    ),
  },
  options: {
    '--data <dir>': 'folder that keeps all data (default: CAPSTAN_DATA, else .capstan)',
    '--ephemeral': usually('keep the data in a temporary folder and remove it at the end', false),
    '--exit': usually('end by itself when the run has ended', false),
  },
  run: ({ scenario, ...options }, shell) => runDemo(scenario, options, shell),
});
