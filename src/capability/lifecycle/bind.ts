/** Step 4 of the bootstrap: listen on the given port, or on a random free one of 8100 to 8200. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const firstPort = 8_100;
const lastPort = 8_200;

async function listen(server: Server, host: string, port: number): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function isTaken(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && (error.code === 'EADDRINUSE' || error.code === 'EACCES')
  );
}

function shuffledPorts(): number[] {
  return Array.from({ length: lastPort - firstPort + 1 }, (_, i) => ({
    port: firstPort + i,
    rank: Math.random(),
  }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ port }) => port);
}

/** @throws Error when the given port, or every port of the range, is taken */
export async function bindServer(
  server: Server,
  host: string,
  port: number | undefined,
  candidates: readonly number[] = shuffledPorts(),
): Promise<number> {
  for (const candidate of port === undefined ? candidates : [port]) {
    try {
      return await listen(server, host, candidate);
    } catch (error) {
      if (!isTaken(error)) throw error;
    }
  }
  const tried = port === undefined ? `every port from ${firstPort} to ${lastPort}` : `port ${port}`;
  throw new Error(`${tried} of ${host} is taken`);
}
