/** Finds ports of this machine that nobody listens on. */
import { connect, createServer } from 'node:net';

export function isPortAnswered(port: number): Promise<boolean> {
  return new Promise<boolean>((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** The port that was bound for a moment, or null when it is taken. @param port 0 = any */
function bind(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : null));
    });
  });
}

export async function isPortFree(port: number): Promise<boolean> {
  return (await bind(port)) !== null && !(await isPortAnswered(port));
}

/** The first free one of `preferred`, else any free one that is not in `taken`. */
export async function choosePort(
  preferred: readonly number[],
  taken: ReadonlySet<number> = new Set(),
): Promise<number> {
  for (const port of preferred) if (!taken.has(port) && (await isPortFree(port))) return port;
  for (;;) {
    const port = await bind(0);
    if (port === null) throw new Error('no free TCP port on 127.0.0.1');
    if (!taken.has(port)) return port;
  }
}
