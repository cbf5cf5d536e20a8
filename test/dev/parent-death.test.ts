import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { isPortFree } from '../../src/dev/ports.ts';
import { type Account, canReach, chooseAccount } from '../../src/dev/postgres/programs.ts';
import { isRunning } from '../../src/dev/supervisor/child-process.ts';
import type { SupervisedProcess } from '../../src/dev/supervisor/supervisor.ts';
import { findCacheDir, findPresentProgram } from '../../src/dev/temporal/source.ts';
import { findCompiled } from '../support/compiled.ts';
import { isLong } from '../support/long.ts';
import { waitFor } from '../support/wait.ts';

const fixture = findCompiled(inject('packageFolder'), 'test/dev/fixtures/start-servers.ts');

let dataDir: string;
let parent: ChildProcess | undefined;

beforeEach(() => {
  dataDir = createTemporaryFolder('capstan-parent-');
});

afterEach(async () => {
  if (parent?.exitCode === null && parent.signalCode === null) parent.kill('SIGKILL');
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

interface Started {
  readonly url: string;
  readonly processes: readonly SupervisedProcess[];
}

function startParent(args: readonly string[], account: Account | null): Promise<Started> {
  return new Promise((resolve, reject) => {
    let errors = '';
    parent = spawn(process.execPath, [fixture, ...args], {
      ...(account ?? {}),
      env: { ...process.env, HOME: args[0], TMPDIR: args[0] },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    parent.stderr?.on('data', (chunk) => {
      errors += chunk;
    });
    if (parent.stdout) createInterface(parent.stdout).once('line', (line) => resolve(JSON.parse(line)));
    parent.once('exit', (code, signal) => reject(new Error(`parent ended: ${code ?? signal}\n${errors}`)));
  });
}

test('a parent that is killed leaves neither Postgres nor Temporal behind', async () => {
  const cacheDir = findCacheDir(process.env, homedir());
  const temporal = await findPresentProgram({ cacheDir, environment: process.env });
  const { url, processes } = await startParent([dataDir, temporal?.path ?? ''], null);
  expect(processes.map(({ name }) => name)).toEqual(['Postgres', 'Temporal']);
  expect(processes.every(isRunning)).toBe(true);
  parent?.kill('SIGKILL');
  await waitFor('the end of all children', () => !processes.some(isRunning));
  expect(await isPortFree(Number(new URL(url).port))).toBe(true);
});

const account = chooseAccount();
const canRun = account === null || canReach(fileURLToPath(new URL('.', import.meta.url)), account);

test.runIf(canRun && isLong)('an ordinary user starts it without any help of root', async () => {
  const own = join(dataDir, 'own');
  mkdirSync(own, { mode: 0o700 });
  if (account !== null)
    await import('node:fs/promises').then(({ chown }) => chown(own, account.uid, account.gid));
  const { processes } = await startParent([own], account);
  expect(statSync(join(own, 'postgres', 'PG_VERSION')).uid).toBe(account?.uid ?? process.getuid?.());
  parent?.kill('SIGTERM');
  await waitFor('the end of all children', () => !processes.some(isRunning));
});
