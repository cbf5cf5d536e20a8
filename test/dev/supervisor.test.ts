import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { planStackPorts } from '../../src/dev/ports.ts';
import type { ProgressEvent } from '../../src/dev/progress.ts';
import type { ChildSpec } from '../../src/dev/supervisor/child-process.ts';
import { readProcessMark } from '../../src/dev/supervisor/child-process.ts';
import { createSupervisor, type Supervisor } from '../../src/dev/supervisor/supervisor.ts';
import { waitFor } from '../support/wait.ts';

let folder: string;
let supervisor: Supervisor;
let events: ProgressEvent[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'capstan-supervisor-'));
  events = [];
  supervisor = createSupervisor({ report: (event) => events.push(event), temporaryFolder: null });
});

afterEach(async () => {
  await supervisor.stop();
  rmSync(folder, { recursive: true });
});

/** What is in a file of the test's folder; nothing while the file is not there yet. */
function log(name: string): string {
  const file = join(folder, name);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** A shell that prints "up" to the common log once it has set its reaction to a signal, and is ready then. */
function shell(name: string, script: string, traps = ''): ChildSpec {
  return {
    name,
    command: '/bin/sh',
    args: ['-c', `exec 3>&2 2>/dev/null; ${traps} echo "${name} up"; ${script}`],
    cwd: folder,
    env: {},
    account: null,
    logFile: join(folder, 'log'),
    stopSignal: 'SIGTERM',
    stopGraceMs: 300,
    readyTimeoutMs: 30_000,
    isReady: async () => log('log').includes(`${name} up`),
  };
}

/** One that ends when it is asked to. However slow the machine is, it has the time for it. */
function serving(name: string): ChildSpec {
  const trap = `trap 'echo "${name} down"; exit' TERM;`;
  return { ...shell(name, 'while :; do sleep 0.05; done', trap), stopGraceMs: 30_000 };
}

test('children are ended in the reverse order of their start', async () => {
  await supervisor.start(serving('first'));
  await supervisor.start(serving('second'));
  await supervisor.stop();
  expect(log('log')).toBe('first up\nsecond up\nsecond down\nfirst down\n');
});

test('a child that ignores the request to stop is killed, and what it started with it', async () => {
  await supervisor.start(
    shell('deaf', `sleep 61 & echo $! > ${folder}/grandchild; wait; wait`, "trap '' TERM;"),
  );
  await waitFor('the grandchild', () => log('grandchild').endsWith('\n'));
  await supervisor.stop();
  await waitFor('its end', () => readProcessMark(Number(log('grandchild'))) === null);
});

test('a child that dies again and again is started again with growing pauses', async () => {
  await supervisor.start({ ...shell('weak', 'sleep 0.2; exit 3'), isReady: async () => true });
  await waitFor('three deaths', () => events.filter(({ status }) => status === 'died').length === 3);
  expect(events.filter(({ status }) => status === 'died').map(({ detail }) => detail)).toEqual([
    'ended with exit code 3; starting it again in 0.5 s',
    'ended with exit code 3; starting it again in 1 s',
    'ended with exit code 3; starting it again in 2 s',
  ]);
});

test('a first start that fails is an error that shows the log, and is not repeated', async () => {
  const broken = { ...shell('broken', 'echo "no such table" >&3; exit 4'), isReady: async () => false };
  await expect(supervisor.start(broken)).rejects.toThrow(
    /broken ended with exit code 4\n.*\n.*\n {2}no such table/,
  );
  expect(supervisor.processes()).toEqual([]);
});

test('a program that does not exist is an error that names it', async () => {
  const absent = { ...shell('absent', ''), command: '/no/such/program' };
  await expect(supervisor.start(absent)).rejects.toThrow(
    /absent could not be started: .*\/no\/such\/program/,
  );
});

test('a child is not ready as long as another process answers on its port', async () => {
  const squatter = createServer().listen(0, '127.0.0.1');
  await waitFor('listening', () => squatter.listening);
  const { port } = squatter.address() as AddressInfo;
  const late = { ...shell('late', 'sleep 0.3; echo "address already in use" >&3; exit 1'), ports: [port] };
  await expect(supervisor.start({ ...late, isReady: async () => true })).rejects.toThrow(
    /late ended with exit code 1\n(.*\n)*.*address already in use/,
  );
  squatter.close();
});

test('ports of the last start are kept, and only a taken one is replaced', async () => {
  const first = (await planStackPorts(folder, null)).ports();
  const squatter = createServer().listen(first.temporal, '127.0.0.1');
  await waitFor('listening', () => squatter.listening);
  const second = (await planStackPorts(folder, null)).ports();
  squatter.close();
  expect({ ...second, temporal: 0 }).toEqual({ ...first, temporal: 0 });
  expect(second.temporal).not.toBe(first.temporal);
});
