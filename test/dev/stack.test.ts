import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { StackFile } from '../../src/contracts/stack.ts';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import type { ProgressEvent } from '../../src/dev/progress.ts';
import { type Stack, startStack } from '../../src/dev/stack.ts';
import { readProcessMark } from '../../src/dev/supervisor/process-identity.ts';
import { waitFor } from '../support/wait.ts';

let root: string;
let dataDir: string;
let stack: Stack | undefined;
let events: ProgressEvent[];

beforeEach(() => {
  root = createTemporaryFolder('capstan-stack-');
  dataDir = join(root, 'my data');
  mkdirSync(dataDir, { mode: 0o711 });
  events = [];
});

afterEach(async () => {
  await stack?.stop();
  rmSync(root, { recursive: true, force: true });
});

async function start(): Promise<Stack> {
  const environment = {
    PATH: process.env.PATH,
    HOME: homedir(),
    XDG_CACHE_HOME: process.env.XDG_CACHE_HOME,
    WORKFLOW_BUNDLE: inject('workflowBundle'),
  };
  const report = (event: ProgressEvent) => void events.push(event);
  stack = await startStack({ dataDir, port: 0, ephemeral: false, samples: false, report, environment });
  return stack;
}

test('the whole stack starts, is reachable by its file, survives a dead worker, and ends without a rest', async () => {
  const { info, file, stop } = await start();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(StackFile.parse(JSON.parse(readFileSync(file, 'utf8')))).toEqual(info);
  const headers = { authorization: `Bearer ${info.api_key}` };
  expect((await fetch(`${info.api_url}/v1/capabilities`, { headers })).status).toBe(200);

  await expect(start()).rejects.toThrow(`${dataDir} is in use by process ${process.pid}, at ${info.api_url}`);

  process.kill(info.pids.worker ?? 0, 'SIGKILL');
  await waitFor('restart', () =>
    events.some(({ part, status }) => part === 'worker' && status === 'restarted'),
  );
  const { pids } = StackFile.parse(JSON.parse(readFileSync(file, 'utf8')));
  expect(pids.worker).not.toBe(info.pids.worker);

  await stop();
  expect(existsSync(file)).toBe(false);
  const children = Object.entries(pids).filter(([name]) => name !== 'capstan');
  expect(children.filter(([, pid]) => readProcessMark(pid) !== null)).toEqual([]);
});
