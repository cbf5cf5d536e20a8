/**
 * The folder in which an embedded stack keeps everything. One stack holds it at a time. The holder of its lock is
 * a living process, told apart from a later one with the same number; the lock of a dead one is taken over. The
 * file of the lock appears with its content in one step, so nobody reads half.
 *
 * What an earlier stack on the same data left running, should its watchdog have been killed as well, is ended
 * first: two servers on one set of data would spoil it. The list of processes is written at every change and names
 * them so that a later one with the same number is never touched.
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

/** Under root, Postgres is another user and must be able to pass; the files inside are closed to others. */
function folderMode(): number {
  return chooseAccount() === null ? 0o700 : 0o711;
}

/** @returns its absolute path */
export function createDataFolder(path: string): string {
  const folder = resolve(path);
  mkdirSync(folder, { recursive: true, mode: folderMode() });
  return folder;
}

/** A new folder that everybody who has to can reach; the caller removes it. @param preferred where it is made if possible */
export function createTemporaryFolder(prefix: string, preferred: readonly string[] = []): string {
  const account = chooseAccount();
  const places = [...preferred, tmpdir(), '/tmp', '/var/tmp'];
  const place = places.find((entry) => account === null || canReach(entry, account)) ?? tmpdir();
  const folder = mkdtempSync(join(place, prefix));
  chmodSync(folder, folderMode());
  return folder;
}

// One stack per data folder. The holder is a living process, told apart from a later one with the same number; the
// lock of a dead one is taken over. The file appears with its content in one step, so nobody reads half.

interface Holder extends ProcessIdentity {
  readonly api_url: string | null;
  readonly started_at: string;
}

export interface DataLock {
  /** Told to whoever comes second. */
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

/** Makes way for us when the holder is dead. @throws Error when it lives */
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
    // Another start was faster and this is its fresh lock: give it back.
    linkSync(aside, file);
    rmSync(aside);
    refuse(dataDir, moved);
  }
  rmSync(aside);
}

function isTaken(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EEXIST';
}

/** @throws Error that names the process that holds it, its address and since when */
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

// Ends what an earlier stack on the same data left running, should its watchdog have been killed as well: two
// servers on one set of data would spoil it. The list is written at every change and names processes so that a
// later one with the same number is never touched.

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

/** Only for the holder of the lock. @returns the names of what had to be ended */
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
