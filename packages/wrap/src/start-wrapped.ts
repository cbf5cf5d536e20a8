/** Runs the capability of a file as an instance in this process. */
import { dirname, resolve } from 'node:path';
import type { Capability, RunningInstance } from '@capstan/capability';
import { readSettings, startInstance } from '@capstan/capability';
import { readWrapFile } from './wrap-file.ts';

export interface WrapSource {
  readonly file: string;
  readonly text: string;
  readonly stateDir: string;
  readonly environment: NodeJS.ProcessEnv;
  /** A variable that is not set is no fault: the file is only checked. */
  readonly checks?: boolean;
}

export function readWrapSource({
  file,
  text,
  stateDir,
  ...options
}: WrapSource): ReturnType<typeof readWrapFile> {
  return readWrapFile(text, { folder: dirname(resolve(file)), stateDir: resolve(stateDir), ...options });
}

interface StartOptions {
  print(line: string): void;
  readonly signal: AbortSignal;
}

/** @throws Error when a step of the start fails */
export function startWrapped(
  { file, environment }: WrapSource,
  capability: Capability,
  { print, signal }: StartOptions,
): Promise<RunningInstance> {
  print(`1/8 download: ${file} is a file, used in place`);
  return startInstance(capability, { settings: readSettings(environment), print, signal });
}
