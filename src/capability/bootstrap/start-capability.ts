/**
 * The engine of `capstan capability start SOURCE`: all eight steps of the bootstrap lifecycle, the download
 * included. SOURCE runs in this process; steps 2 to 8 are those of any stand-alone instance.
 */
import { resolve } from 'node:path';
import { type RunningInstance, startInstance } from '../lifecycle/start-instance.ts';
import { readSettings } from '../settings.ts';
import { downloadSource } from './download.ts';
import { loadCapability } from './load-capability.ts';

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
  const capability = await loadCapability(folder);
  return startInstance(capability, {
    settings,
    cacheDir,
    print,
    ...(signal === undefined ? {} : { signal }),
  });
}
