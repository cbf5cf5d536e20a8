import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram, type Program } from '../../src/dev/programs.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';

/** A script of this folder, through the TypeScript loader like all others. @param file with extension */
export function findScript(file: string, ...more: readonly string[]): Program {
  const { command, args } = findProgram('../bench/engine/main');
  return { command, args: [...args.with(-1, fileURLToPath(new URL(file, import.meta.url))), ...more] };
}

export interface BenchProcess {
  readonly dataDir: string;
  readonly name: string;
  readonly program: Program;
  readonly env?: NodeJS.ProcessEnv;
  readonly isReady: () => Promise<boolean>;
}

export function describeProcess({ dataDir, name, program, env, isReady }: BenchProcess): ChildSpec {
  return {
    name,
    ...program,
    cwd: process.cwd(),
    env: { ...process.env, ...env },
    account: null,
    isReady,
    logFile: join(dataDir, 'logs', `${name.toLowerCase().replaceAll(' ', '-')}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 5_000,
    readyTimeoutMs: 60_000,
  };
}

export async function answersAt(url: string): Promise<boolean> {
  return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok;
}
