import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { choosePort, isPortFree } from '../../src/dev/ports.ts';

/** The lowest that systems give to connections: Linux. */
const connectionsFrom = 32_768;

it('prefers a free port, and leaves one that is in use or taken', async () => {
  const port = await choosePort([]);
  expect(await choosePort([port])).toBe(port);
  expect(await choosePort([port], new Set([port]))).not.toBe(port);
  const server = createServer().listen(port, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  expect(await isPortFree(port)).toBe(false);
  expect(await choosePort([port])).not.toBe(port);
  server.close();
});

it('chooses none that a connection of somebody else may get before it is used', async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, () => choosePort([])));
  expect(ports.filter((port) => port >= connectionsFrom || port < 1_024)).toEqual([]);
});
