/**
 * The embedded stack: everything that Capstan needs on one machine, started in order and kept alive. Each data folder
 * has one stack; its `stack.json` holds the addresses while the stack runs.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { StackFile } from '@capstan/core/contracts/stack';
import { findWatchedFolders, type WatchedCapability, watchCapability } from './capabilities.ts';
import {
  createDataFolder,
  createTemporaryFolder,
  type DataLock,
  endLeftovers,
  forgetProcesses,
  lockDataFolder,
  writeProcesses,
} from './data-folder.ts';
import { planStackPorts } from './ports.ts';
import type { Report } from './progress.ts';
import { startParts } from './stack-parts.ts';
import { createSupervisor, type SupervisedProcess, type Supervisor } from './supervisor/supervisor.ts';
import { findUnfit, readSystem } from './system.ts';
import { findCacheDir } from './temporal/source.ts';

export interface StackOptions {
  /** Ignored when ephemeral. */
  readonly dataDir: string;
  /** The port of the API, which must be free; 0 = any; null = the last one or 7400, or a free one if it is in use. */
  readonly port: number | null;
  /** Keeps the data in a temporary folder that is removed with the stack. */
  readonly ephemeral: boolean;
  readonly samples: boolean;
  /** Folders of watched capabilities, each restarted when its files change. */
  readonly watch?: readonly string[];
  readonly report: Report;
  readonly environment: NodeJS.ProcessEnv;
  /** Aborts a start in progress; afterwards, use `stop`. */
  readonly signal?: AbortSignal;
}

export interface Stack {
  /** Path of stack.json. */
  readonly file: string;
  readonly info: StackFile;
  /** Ends all children, newest first. May be called more than once. */
  readonly stop: () => Promise<void>;
}

function toPids(processes: readonly SupervisedProcess[]): Record<string, number> {
  return {
    capstan: process.pid,
    ...Object.fromEntries(processes.map(({ name, pid }) => [name.toLowerCase(), pid])),
  };
}

function writeStackFile(file: string, info: StackFile): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(info, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

interface Held {
  readonly dataDir: string;
  readonly file: string;
  readonly lock: DataLock;
  readonly supervisor: Supervisor;
  /** Writes stack.json now and whenever a process is replaced. */
  readonly publish: (info: Omit<StackFile, 'pids'>) => StackFile;
}

/** Locks the folder, and ends what an earlier start has left running. @throws Error when a stack runs on it */
export async function holdFolder(
  options: Pick<StackOptions, 'dataDir' | 'ephemeral' | 'report'>,
): Promise<Held> {
  const { ephemeral, report } = options;
  const dataDir = ephemeral ? createTemporaryFolder('capstan-') : createDataFolder(options.dataDir);
  const file = join(dataDir, 'stack.json');
  const lock = lockDataFolder(dataDir);
  const ended = await endLeftovers(dataDir);
  if (ended.length > 0) {
    const detail = `ended what an earlier start had left running: ${ended.join(', ')}`;
    report({ part: 'data', status: 'note', detail, elapsedMs: 0 });
  }
  let published: Omit<StackFile, 'pids'> | null = null;
  const write = (processes: readonly SupervisedProcess[]): void => {
    writeProcesses(dataDir, processes);
    if (published !== null) writeStackFile(file, { ...published, pids: toPids(processes) });
  };
  const supervisor = createSupervisor({
    report,
    temporaryFolder: ephemeral ? dataDir : null,
    onChange: write,
  });
  const publish = (info: Omit<StackFile, 'pids'>): StackFile => {
    published = info;
    write(supervisor.processes());
    return { ...info, pids: toPids(supervisor.processes()) };
  };
  return { dataDir, file, lock, supervisor, publish };
}

export async function releaseFolder({ dataDir, file, lock, supervisor }: Held): Promise<void> {
  await supervisor.stop();
  rmSync(file, { force: true });
  forgetProcesses(dataDir);
  lock.release();
}

function rejectOnAbort(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const refuse = () => reject(new Error('the start was interrupted'));
    if (signal?.aborted) refuse();
    signal?.addEventListener('abort', refuse, { once: true });
  });
}

function watchFolders(
  { dataDir, supervisor }: Held,
  { environment, report, watch = [] }: StackOptions,
  info: StackFile,
): WatchedCapability[] {
  const { api_url: apiUrl, api_key: apiKey, media_url: mediaUrl } = info;
  const access = { dataDir, environment, apiUrl, apiKey, mediaUrl };
  const folders = watch.flatMap(findWatchedFolders);
  return folders.map((folder) => watchCapability(folder, { access, supervisor, report }));
}

/**
 * Resolves when all parts are ready.
 * @throws Error that names the part that did not start, with the end of its log; everything started so far is stopped
 * then
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const unfit = findUnfit(readSystem());
  if (unfit !== null) throw new Error(unfit);
  // Validated before anything is started.
  (options.watch ?? []).forEach(findWatchedFolders);
  const held = await holdFolder(options);
  const { dataDir, supervisor, lock } = held;
  let watching: readonly WatchedCapability[] = [];
  const ending = new AbortController();
  const stop = async (): Promise<void> => {
    ending.abort();
    await Promise.all(watching.map(({ close }) => close()));
    await releaseFolder(held);
  };
  try {
    const plan = await planStackPorts(dataDir, options.port);
    const cacheDir = findCacheDir(options.environment, homedir());
    const place = { dataDir, supervisor, plan, cacheDir, setApiUrl: lock.setApiUrl, ending: ending.signal };
    const started = startParts({ ...options, ...place });
    const info = held.publish(await Promise.race([started, rejectOnAbort(options.signal)]));
    watching = watchFolders(held, options, info);
    const allStarted = Promise.all(watching.map((one) => one.started));
    await Promise.race([allStarted, rejectOnAbort(options.signal)]);
    return { file: held.file, info, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
