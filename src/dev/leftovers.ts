/**
 * Ends what an earlier stack on the same data left running, should its watchdog have been killed as well: two
 * servers on one set of data would spoil it. The list is written at every change and names processes so
 * that a later one with the same number is never touched.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { signalGroup } from './supervisor/child-process.ts';
import { isRunning } from './supervisor/process-identity.ts';
import type { SupervisedProcess } from './supervisor/supervisor.ts';

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
