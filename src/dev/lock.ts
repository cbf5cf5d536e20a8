/**
 * One stack per data folder. The holder is a living process, told apart from a later one with the same number;
 * the lock of a dead one is taken over. The file appears with its content in one step, so nobody reads half.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identifyProcess, isRunning, type ProcessIdentity } from './supervisor/process-identity.ts';

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
