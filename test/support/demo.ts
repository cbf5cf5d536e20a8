/** The demo as a user starts it, on data and ports of its own. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { choosePort } from '../../src/dev/ports.ts';

/** A stack that starts in parallel would choose the same default ports. */
async function rememberFreePorts(dataDir: string): Promise<void> {
  const ports: Record<string, number> = {};
  for (const name of ['api', 'postgres', 'temporal', 'temporal_ui']) {
    ports[name] = await choosePort([], new Set(Object.values(ports)));
  }
  await mkdir(dataDir);
  await writeFile(join(dataDir, 'ports.json'), JSON.stringify(ports));
}

export interface DemoOptions {
  /** A checkout or a package. */
  readonly folder: string;
  /** Must not exist. */
  readonly dataDir: string;
  readonly scenario?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

function wordsOf({ folder, dataDir, scenario }: DemoOptions): string[] {
  const words = scenario === undefined ? [] : [scenario];
  return [join(folder, 'bin/capstan.mjs'), 'demo', ...words, '--data', dataDir];
}

function environmentOf({ environment }: DemoOptions): NodeJS.ProcessEnv {
  // Another file of the worker may have set the Temporal of the tests: the demonstration starts its own.
  const { TEMPORAL_ADDRESS: _, ...own } = process.env;
  return { ...own, ...environment, NO_COLOR: '1' };
}

/**
 * @returns its output
 * @throws Error when its exit code is not 0
 */
export async function runDemo(options: DemoOptions): Promise<string> {
  await rememberFreePorts(options.dataDir);
  const { stdout } = await promisify(execFile)(process.execPath, [...wordsOf(options), '--exit'], {
    env: environmentOf(options),
  });
  return stdout;
}

export interface OpenDemo {
  /** Resolves when it waits for Ctrl-C. */
  readonly printed: string;
  /** Stops it by Ctrl-C. @returns its exit code */
  readonly end: () => Promise<number | null>;
}

/** @throws Error with its output, when it ends before it waits for Ctrl-C */
async function readUntilOpen(stdout: Readable): Promise<string> {
  let printed = '';
  for await (const part of stdout.iterator({ destroyOnReturn: false })) {
    printed += String(part);
    if (!printed.includes('Ctrl-C stops everything.')) continue;
    stdout.resume();
    return printed;
  }
  throw new Error(`the demo ended: ${printed}`);
}

/** The running demo, with all of its processes, until the test stops it. */
export async function openDemo(options: DemoOptions): Promise<OpenDemo> {
  await rememberFreePorts(options.dataDir);
  const child = spawn(process.execPath, wordsOf(options), {
    env: environmentOf(options),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const end = async (): Promise<number | null> => {
    child.kill('SIGINT');
    const [code] = (await ended) as [number | null];
    return code;
  };
  try {
    return { printed: await readUntilOpen(child.stdout), end };
  } catch (thrown) {
    child.kill('SIGINT');
    throw thrown;
  }
}
