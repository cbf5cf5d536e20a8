import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findPortHolder } from '@capstan/core/errors/taken-port';
import { expect, it, onTestFinished } from 'vitest';
import {
  choosePort,
  isPortFree,
  planStackPorts,
  type StackPorts,
  startOnPorts,
} from '../../src/dev/ports.ts';

/** The lowest that systems give to connections: Linux. */
const connectionsFrom = 32_768;

async function squat(port: number, host = '127.0.0.1'): Promise<Server> {
  const server = createServer().listen(port, host);
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  return server;
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'capstan-ports-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

it('prefers a free port, and leaves one that is in use or taken', async () => {
  const port = await choosePort([]);
  expect(await choosePort([port])).toBe(port);
  expect(await choosePort([port], new Set([port]))).not.toBe(port);
  await squat(port);
  expect(await isPortFree(port)).toBe(false);
  expect(await choosePort([port])).not.toBe(port);
});

it('chooses none that an outgoing connection may get before it is used', async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, () => choosePort([])));
  expect(ports.filter((port) => port >= connectionsFrom || port < 1_024)).toEqual([]);
});

it.each(['127.0.0.1', '::1', '0.0.0.0'])('finds the process that listens on a port of %s', async (host) => {
  const { port } = (await squat(0, host)).address() as AddressInfo;
  expect(findPortHolder(port)).toMatchObject({ pid: process.pid, command: expect.stringContaining('node') });
});

it('finds no process on a free port, nor for a connection', async () => {
  expect(findPortHolder(await choosePort([]))).toBeNull();
});

it('uses the port that the user names, and refuses one that is in use by naming the process', async () => {
  const port = await choosePort([]);
  const plan = await planStackPorts(makeFolder(), port);
  expect(plan.ports().api).toBe(port);
  await squat(port);
  const refusal = new RegExp(`port ${port} is in use by process ${process.pid} \\(.*node.*\\): .*--port 0`);
  await expect(planStackPorts(makeFolder(), port)).rejects.toThrow(refusal);
  const start = () => startOnPorts(plan, ['api'], () => Promise.reject(new Error('EADDRINUSE')));
  await expect(start()).rejects.toThrow(refusal);
});

/** As programs write it. */
const refusals = [
  'server ended with exit code 1\n  Error: listen EADDRINUSE: address already in use 127.0.0.1:7400',
  'Postgres ended with exit code 1\n  could not bind IPv4 address "127.0.0.1": Address already in use',
  "can't set frontend port 7233: listen tcp 127.0.0.1:7233: bind: address already in use",
];

it('keeps any port over a restart: capabilities and browsers know it', async () => {
  const folder = makeFolder();
  const { api } = (await planStackPorts(folder, 0)).ports();
  expect((await planStackPorts(folder, 0)).ports().api).toBe(api);
  await squat(api);
  expect((await planStackPorts(folder, 0)).ports().api).not.toBe(api);
});

it.each(refusals)('starts a part on other ports when a process has been faster: %s', async (message) => {
  const folder = makeFolder();
  const plan = await planStackPorts(folder, 0);
  const first = plan.ports();
  const tried: StackPorts[] = [];
  const last = await startOnPorts(plan, ['temporal', 'temporal_ui'], async (ports) => {
    tried.push(ports);
    if (tried.length < 4) throw new Error(message);
    return ports;
  });
  expect(new Set(tried.flatMap(({ temporal, temporal_ui }) => [temporal, temporal_ui])).size).toBe(8);
  expect({ ...last, temporal: 0, temporal_ui: 0 }).toEqual({ ...first, temporal: 0, temporal_ui: 0 });
  expect(JSON.parse(readFileSync(join(folder, 'ports.json'), 'utf8'))).toEqual(last);
});

it('gives up after five starts, and at once for another reason', async () => {
  const plan = await planStackPorts(makeFolder(), 0);
  const fail = async (message: string): Promise<number> => {
    let starts = 0;
    const failing = startOnPorts(plan, ['postgres'], async () => {
      starts += 1;
      throw new Error(message);
    });
    await expect(failing).rejects.toThrow(message);
    return starts;
  };
  expect(await fail('EADDRINUSE')).toBe(5);
  expect(await fail('no space left on device')).toBe(1);
});

it('plans of stacks that start together may meet, and each start moves on', async () => {
  const one = await planStackPorts(makeFolder(), 0);
  const other = await planStackPorts(makeFolder(), 0);
  const servers: Server[] = [];
  const listen = async ({ postgres }: StackPorts): Promise<number> => {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(postgres, '127.0.0.1', resolve);
    });
    servers.push(server);
    return postgres;
  };
  const ports = await Promise.all([one, other].map((plan) => startOnPorts(plan, ['postgres'], listen)));
  expect(new Set(ports).size).toBe(2);
  for (const server of servers) server.close();
});
