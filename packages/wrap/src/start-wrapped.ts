/**
 * Runs a wrapped capability in two processes. The first one registers and keeps the second, which serves: it starts it
 * again after a crash, at the same address, and stays registered meanwhile. The second ends with the first.
 */
import { dirname, resolve } from 'node:path';
import type { Capability, RunningInstance } from '@capstan/capability';
import { readSettings } from '@capstan/capability';
import { isKept, keptCommand, startKept, startProgram } from '@capstan/capability/bootstrap/start-program';
import { readWrapFile } from './wrap-file.ts';

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

interface StartOptions {
  print(line: string): void;
  readonly signal: AbortSignal;
}

/** @throws Error when a step of the start fails */
export function startWrapped(
  wrapped: WrapSource,
  capability: Capability,
  options: StartOptions,
): Promise<RunningInstance> {
  const { file, stateDir, environment } = wrapped;
  const { print, signal } = options;
  if (isKept(environment)) {
    return startKept(capability, environment, { print, signal, hidden: /^\d\/8 / });
  }
  print(`1/8 download: ${file} is a file, used in place`);
  const words = ['capability', 'wrap', resolve(file), '--state-dir', resolve(stateDir)];
  const source = { ...keptCommand(words, environment), facts: capability };
  return startProgram(source, { settings: readSettings(environment), print, signal });
}
