/** The processes of the stack that answer by HTTP at a port of their own. */
import { join } from 'node:path';
import { findProgram } from '../../src/dev/programs.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import type { Place } from '../shared/run-bench.ts';

/** What is started as a part of the stack. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

function childOf(
  dataDir: string,
  name: string,
  { command, args, environment }: Program,
  readyUrl: string,
): ChildSpec {
  return {
    name,
    command,
    args,
    cwd: process.cwd(),
    env: { ...process.env, ...environment },
    account: null,
    logFile: join(dataDir, 'logs', `${name.replaceAll(' ', '-')}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 2_000,
    readyTimeoutMs: 120_000,
    isReady: async () => (await fetch(readyUrl, { signal: AbortSignal.timeout(2_000) })).status > 0,
  };
}

export function program(path: string, ...more: string[]): Program {
  const { command, args } = findProgram(`../bench/router/${path}`);
  return { command, args: [...args, ...more] };
}

export function at(port: number): string {
  return `http://127.0.0.1:${port}`;
}

export async function startPart(
  { supervisor, dataDir, nextPort }: Place,
  name: string,
  { toProgram, ready }: Start,
): Promise<string> {
  const port = await nextPort();
  await supervisor.start(childOf(dataDir, name, toProgram(port), at(port) + ready));
  return at(port);
}

export interface Start {
  readonly toProgram: (port: number) => Program;
  /** The path that answers once it is ready. */
  readonly ready: string;
}
