/**
 * Runs a wrapped capability in two processes. The first one registers and keeps the second, which serves: it starts it
 * again after a crash, at the same address, and stays registered meanwhile. The second ends with the first.
 */
import { dirname, resolve } from 'node:path';
import { startProgram } from '../capability/bootstrap/start-program.ts';
import type { Capability } from '../capability/index.ts';
import { type RunningInstance, startInstance } from '../capability/lifecycle/start-instance.ts';
import { readSettings } from '../capability/settings.ts';
import { readWrapFile } from './wrap-file.ts';

/** Set in the environment of the process that serves. */
const keptVariable = 'CAPSTAN_KEPT_INSTANCE';

export interface WrapSource {
  readonly file: string;
  readonly text: string;
  readonly stateDir: string;
  readonly environment: NodeJS.ProcessEnv;
}

export function readWrapSource({
  file,
  text,
  stateDir,
  environment,
}: WrapSource): ReturnType<typeof readWrapFile> {
  return readWrapFile(text, { folder: dirname(resolve(file)), stateDir: resolve(stateDir), environment });
}

/** Whether this process serves, and another one keeps it. Only SIGTERM stops it: the other one decides. */
export function isKept(environment: NodeJS.ProcessEnv): boolean {
  return environment[keptVariable] === 'true';
}

interface StartOptions {
  print(line: string): void;
  readonly signal: AbortSignal;
}

/** @throws Error when a step of the start fails */
export function startWrapped(
  source: WrapSource,
  capability: Capability,
  options: StartOptions,
): Promise<RunningInstance> {
  const { file, stateDir, environment } = source;
  const { print, signal } = options;
  if (isKept(environment)) {
    // A terminal sends SIGINT to both processes.
    process.on('SIGINT', () => undefined);
    const settings = readSettings({ ...environment, ROUTER_URL: undefined });
    // The process above prints the steps of the start.
    const printLog = (line: string): void => void (/^\d\/8 /.test(line) || print(line));
    return startInstance(capability, { settings, print: printLog, signal });
  }
  print(`1/8 download: ${file} is a file, used in place`);
  const [program = ''] = process.argv.slice(1);
  const wrap = ['capability', 'wrap', resolve(file), '--state-dir', resolve(stateDir)];
  const kept = {
    folder: process.cwd(),
    command: [process.execPath, ...process.execArgv, program, ...wrap] as [string, ...string[]],
    facts: capability,
    environment: { ...environment, [keptVariable]: 'true' },
  };
  return startProgram(kept, { settings: readSettings(environment), print, signal });
}
