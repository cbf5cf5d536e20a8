/**
 * The data folder of an embedded stack. One stack locks it at a time. The lock names a living process, which a mark
 * distinguishes from a later one with the same number; a dead process's lock is replaced. The lock file appears with
 * its content in one step, so no reader sees half.
 *
 * Processes that an earlier stack on the same data left running, because its watchdog was killed as well, are ended
 * first: two servers on the same data would corrupt it. The list of processes is written at every change, with their
 * marks, so that a later process with the same number is never touched.
 */
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { canReach, chooseAccount } from './postgres/programs.ts';
import { identifyProcess, isRunning, type ProcessIdentity, signalGroup } from './supervisor/child-process.ts';
import type { SupervisedProcess } from './supervisor/supervisor.ts';

/** Under root, Postgres runs as another user that must be able to enter; the files inside are closed to others. */
function folderMode(): number {
  return chooseAccount() === null ? 0o700 : 0o711;
}

/** @returns the absolute path */
export function createDataFolder(path: string): string {
  const folder = resolve(path);
  mkdirSync(folder, { recursive: true, mode: folderMode() });
  return folder;
}

/**
 * A new folder that all required users can reach; the caller removes it.
 * @param preferred parent folders to try first
 */
export function createTemporaryFolder(prefix: string, preferred: readonly string[] = []): string {
  const account = chooseAccount();
  const places = [...preferred, tmpdir(), '/tmp', '/var/tmp'];
  const place = places.find((entry) => account === null || canReach(entry, account)) ?? tmpdir();
  const folder = mkdtempSync(join(place, prefix));
  chmodSync(folder, folderMode());
  return folder;
}

// The lock of the data folder; see the header.

interface Holder extends ProcessIdentity {
  readonly api_url: string | null;
  readonly started_at: string;
}

export interface DataLock {
  /** The address that a second stack's error message names. */
  readonly setApiUrl: (url: string) => void;
  readonly release: () => void;
}

function readHolder(file: string): Holder | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

function refuse(dataDir: string, holder: Holder): never {
  const address = holder.api_url === null ? 'still starting' : `at ${holder.api_url}`;
  throw new Error(
    `${dataDir} is in use by process ${holder.pid}, ${address}, started ${holder.started_at}: ` +
      'use that one, stop it, or choose another --data folder',
  );
}

/** Removes the lock of a dead process. @throws Error when the process lives */
function clearStale(file: string, dataDir: string): void {
  const holder = readHolder(file);
  if (holder !== null && isRunning(holder)) refuse(dataDir, holder);
  const aside = `${file}.${process.pid}.stale`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  const moved = readHolder(aside);
  if (moved !== null && isRunning(moved)) {
    // Another start was faster, and this is its new lock: restore it.
    linkSync(aside, file);
    rmSync(aside);
    refuse(dataDir, moved);
  }
  rmSync(aside);
}

function isTaken(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EEXIST';
}

/** @throws Error that names the process that holds the lock, its address and its start time */
export function lockDataFolder(dataDir: string): DataLock {
  const file = join(dataDir, 'lock.json');
  const draft = `${file}.${process.pid}`;
  let holder: Holder = {
    ...identifyProcess(process.pid),
    api_url: null,
    started_at: new Date().toISOString(),
  };
  const write = () => writeFileSync(draft, JSON.stringify(holder), { mode: 0o600 });
  write();
  try {
    for (;;) {
      try {
        linkSync(draft, file);
        break;
      } catch (error) {
        if (!isTaken(error)) throw error;
        clearStale(file, dataDir);
      }
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return {
    setApiUrl: (url) => {
      holder = { ...holder, api_url: url };
      write();
      renameSync(draft, file);
    },
    release: () => rmSync(file, { force: true }),
  };
}

// Ends leftover processes of an earlier stack; see the header.

const graceMs = 15_000;

function listFile(dataDir: string): string {
  return join(dataDir, 'processes.json');
}

export function writeProcesses(dataDir: string, processes: readonly SupervisedProcess[]): void {
  const draft = `${listFile(dataDir)}.new`;
  writeFileSync(draft, JSON.stringify(processes, null, 2), { mode: 0o600 });
  renameSync(draft, listFile(dataDir));
}

export function forgetProcesses(dataDir: string): void {
  rmSync(listFile(dataDir), { force: true });
}

function readProcesses(dataDir: string): readonly SupervisedProcess[] {
  try {
    return JSON.parse(readFileSync(listFile(dataDir), 'utf8'));
  } catch {
    return [];
  }
}

/** Call it only while holding the lock. @returns the names of the ended processes */
export async function endLeftovers(dataDir: string): Promise<string[]> {
  const left = readProcesses(dataDir).filter(isRunning);
  for (const { pid, stop_signal } of left) signalGroup(pid, stop_signal);
  const deadline = performance.now() + graceMs;
  while (left.some(isRunning) && performance.now() < deadline) await sleep(50);
  for (const process of left.filter(isRunning)) signalGroup(process.pid, 'SIGKILL');
  while (left.some(isRunning)) await sleep(50);
  forgetProcesses(dataDir);
  return left.map(({ name }) => name);
}
