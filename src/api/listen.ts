/** Serves an app on a port, with limits on how long and how much a client may occupy the process. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describeTakenPort } from '@capstan/core/errors/taken-port';
import type { App } from './app.ts';
import { httpLimits } from './limits.ts';

export interface Listening {
  /** `http://host:port` */
  readonly url: string;
  /** Stops accepting requests, lets requests in flight end, cuts the rest after `graceMs`. */
  readonly close: () => Promise<void>;
}

export interface ListenOptions {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly headersTimeoutMs: number;
  readonly graceMs: number;
}

const unusedGraceMs = 1_000;

function open(server: Server, { host, port }: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why = cause.code === 'EADDRINUSE' ? `${cause.code}: ${describeTakenPort(port)}` : cause.code;
      reject(new Error(`PORT: ${host}:${port} cannot be opened (${why})`, { cause }));
    });
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

/** Connections without a request so far. Node counts them neither as idle nor, while closing, as late. */
function trackUnused(server: Server): ReadonlySet<Socket> {
  const unused = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.on('request', ({ socket }) => unused.delete(socket));
  return unused;
}

/** Connections become idle when their last answer ends; unused ones get a moment to send a request. */
function shut(server: Server, unused: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), 100);
    const late = setTimeout(() => unused.forEach((socket) => void socket.destroy()), unusedGraceMs);
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearInterval(sweep);
      clearTimeout(late);
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}

function toHost(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

/** @throws Error that names the port, and the process that holds it, when the port cannot be opened */
export async function listen(app: App, options: ListenOptions): Promise<Listening> {
  const server = createServer(
    {
      maxHeaderSize: httpLimits.headerBytes,
      headersTimeout: options.headersTimeoutMs,
      // Bodies have their own limits: a JSON body in total, a media file between two chunks.
      requestTimeout: 0,
      keepAliveTimeout: httpLimits.keepAliveMs,
      connectionsCheckingInterval: Math.ceil(options.headersTimeoutMs / 5),
    },
    app.handle,
  );
  server.maxConnections = httpLimits.connections;
  server.timeout = httpLimits.idleMs;
  const unused = trackUnused(server);
  const { address, port } = await open(server, options);
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    app.drain();
    closed ??= shut(server, unused, options.graceMs);
    return closed;
  };
  return { url: `http://${toHost(address)}:${port}`, close };
}
