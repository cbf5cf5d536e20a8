/** Serves an app on a port, with limits on how long and how much a client may keep us busy. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { App } from './app.ts';
import { httpLimits } from './limits.ts';

export interface Listening {
  /** `http://host:port` */
  readonly url: string;
  /** Takes no more requests, lets those under way end, cuts what is left after `graceMs`. */
  readonly close: () => Promise<void>;
}

export interface ListenOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  readonly graceMs?: number;
}

const open = (server: Server, { host, port }: ListenOptions): Promise<AddressInfo> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });

/** Connections whose last answer was under way already become idle one by one. */
const shut = (server: Server, graceMs: number): Promise<void> =>
  new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), 100);
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearInterval(sweep);
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });

const toHost = (address: string): string => (address.includes(':') ? `[${address}]` : address);

/** @throws Error of Node when the port cannot be opened */
export const listen = async (app: App, options: ListenOptions): Promise<Listening> => {
  const server = createServer(
    {
      maxHeaderSize: httpLimits.headerBytes,
      headersTimeout: httpLimits.headersTimeoutMs,
      // Bodies have their own limits: a JSON body in total, a media file between two pieces.
      requestTimeout: 0,
      keepAliveTimeout: httpLimits.keepAliveMs,
      connectionsCheckingInterval: 2_000,
    },
    app.handle,
  );
  server.maxConnections = httpLimits.connections;
  server.timeout = httpLimits.idleMs;
  const { address, port } = await open(server, options);
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    app.drain();
    closed ??= shut(server, options.graceMs ?? 25_000);
    return closed;
  };
  return { url: `http://${toHost(address)}:${port}`, close };
};
