/**
 * The engine of `capstan capability start SOURCE`: all eight steps of the bootstrap lifecycle, the download
 * included. A module of SOURCE runs in this process, and steps 2 to 8 are those of any stand-alone instance; a
 * program of SOURCE, in any language, runs as a child that is registered and watched from here.
 */
import { resolve } from 'node:path';
import { type RunningInstance, startInstance } from '../lifecycle/start-instance.ts';
import { readSettings } from '../settings.ts';
import { downloadSource } from './download.ts';
import { loadCapability } from './load-capability.ts';
import { readManifest } from './manifest.ts';
import { startProgram } from './start-program.ts';

export interface BootstrapOptions {
  /** A folder, or what npm installs. */
  readonly source: string;
  /** Packages and prerequisites are installed below it. */
  readonly cacheDir: string;
  /** Default: the environment of this process. */
  readonly env?: NodeJS.ProcessEnv;
  print(line: string): void;
  readonly signal?: AbortSignal;
}

/** @throws Error when a step fails; nothing is left running then */
export async function startCapability(options: BootstrapOptions): Promise<RunningInstance> {
  const { source, print, signal } = options;
  const cacheDir = resolve(options.cacheDir);
  const settings = readSettings(options.env);
  const { folder, summary } = await downloadSource(source, cacheDir, signal);
  print(`1/8 download: ${summary}`);
  const manifest = await readManifest(folder);
  const { capstan } = manifest;
  const starting = { settings, cacheDir, print, ...(signal === undefined ? {} : { signal }) };
  if (capstan?.start !== undefined) {
    const environment = options.env ?? process.env;
    return startProgram({ folder, command: capstan.start, facts: capstan, environment }, starting);
  }
  return startInstance(await loadCapability(folder, manifest), starting);
}
