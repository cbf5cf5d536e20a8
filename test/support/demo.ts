/** The demo as its user starts it, on data and ports of its own. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { choosePort } from '../../src/dev/ports.ts';

/** A stack that starts in the same moment would choose the same usual ports. */
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
  /** Does not exist yet. */
  readonly dataDir: string;
  readonly scenario?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

function wordsOf({ folder, dataDir, scenario }: DemoOptions): string[] {
  const words = scenario === undefined ? [] : [scenario];
  return [join(folder, 'bin/capstan.mjs'), 'demo', ...words, '--data', dataDir];
}

function environmentOf({ environment }: DemoOptions): NodeJS.ProcessEnv {
  return { ...process.env, ...environment, NO_COLOR: '1' };
}

/**
 * @returns what it printed
 * @throws Error when it does not end 0
 */
export async function runDemo(options: DemoOptions): Promise<string> {
  await rememberFreePorts(options.dataDir);
  const { stdout } = await promisify(execFile)(process.execPath, [...wordsOf(options), '--exit'], {
    env: environmentOf(options),
  });
  return stdout;
}

export interface OpenDemo {
  /** Until it waits for Ctrl-C. */
  readonly printed: string;
  /** By Ctrl-C. @returns its exit code */
  readonly end: () => Promise<number | null>;
}

/** @throws Error with what it printed, when it ends before it waits for Ctrl-C */
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

/** The demo as it stays, with all that it started, until somebody has seen enough. */
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
