import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { endLeftovers, lockDataFolder, writeProcesses } from '../../src/dev/data-folder.ts';
import { identifyProcess, isRunning, type ProcessIdentity } from '../../src/dev/supervisor/child-process.ts';
import { waitFor } from '../support/wait.ts';

let dataDir: string;
let child: ChildProcess;
let identity: ProcessIdentity;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'capstan-lock-'));
  child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  identity = identifyProcess(child.pid ?? 0);
});

afterEach(() => {
  child.kill('SIGKILL');
  rmSync(dataDir, { recursive: true });
});

function writeLock(holder: ProcessIdentity): void {
  writeFileSync(
    join(dataDir, 'lock.json'),
    JSON.stringify({ ...holder, api_url: 'http://127.0.0.1:7400', started_at: '2026-01-02T03:04:05Z' }),
  );
}

test('a second start on the same data names who holds them', () => {
  writeLock(identity);
  expect(() => lockDataFolder(dataDir)).toThrow(
    `${dataDir} is in use by process ${identity.pid}, at http://127.0.0.1:7400, started 2026-01-02T03:04:05Z`,
  );
});

test('the lock of a dead process is taken over, by one only', async () => {
  writeLock(identity);
  child.kill('SIGKILL');
  await waitFor('its end', () => !isRunning(identity));
  lockDataFolder(dataDir).setApiUrl('http://127.0.0.1:7411');
  expect(() => lockDataFolder(dataDir)).toThrow(`process ${process.pid}, at http://127.0.0.1:7411`);
});

test('a later process with the same number does not hold the lock of the earlier one', () => {
  writeLock({ pid: identity.pid, mark: 'of another process' });
  const lock = lockDataFolder(dataDir);
  lock.release();
  lockDataFolder(dataDir);
});

test('processes that an earlier start left running are ended, and no others', async () => {
  const bystander = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  const other = { ...identifyProcess(bystander.pid ?? 0), name: 'Temporal', stop_signal: 'SIGTERM' } as const;
  writeProcesses(dataDir, [
    { ...identity, name: 'Postgres', stop_signal: 'SIGTERM' },
    { ...other, mark: 'of an earlier process' },
  ]);
  expect(await endLeftovers(dataDir)).toEqual(['Postgres']);
  expect([isRunning(identity), isRunning(other)]).toEqual([false, true]);
  bystander.kill('SIGKILL');
});
