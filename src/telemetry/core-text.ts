/**
 * The metrics of Temporal's Core, which serves them on a port of its own: they are fetched there and told with ours, so
 * that a worker is one target.
 */
import { createServer } from 'node:net';

const withinMs = 2_000;

/** A port of the loopback address that was free a moment ago: Core cannot be told to choose one and say which. */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

/** @throws when Core does not answer */
export async function readCoreText(port: number): Promise<string> {
  const signal = AbortSignal.timeout(withinMs);
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { signal });
  return response.text();
}
