/**
 * Breaks a connection whose machine has vanished with data on the way: TCP repeats what is not acknowledged for a
 * quarter of an hour, and sends no keepalive meanwhile. An instance at work may read nothing and accept no connection,
 * so its silence alone means nothing.
 *
 * - W1: only connections with unacknowledged data are examined. Linux names them. Elsewhere, they are those that have
 *   been written to since their machine last answered a connect.
 * - W2: every interval, one connect asks for the machine of all of them that have the same address. Accepted or
 *   refused, the machine lives. One that is not made, for its name or its address, means nothing.
 * - W3: a connection breaks after three connects in a row that are not answered. A machine is noticed to be gone three
 *   and a half intervals after it, at the latest.
 * - W4: a connection without unacknowledged data is left to TCP keepalive, which the kernel of the machine answers.
 */
import type { Socket } from 'node:net';
import { type DialGuard, silenceCodes } from '@capstan/guarded-dial/guarded-dial';
import { type PortPair, portPairOf, readQueues } from '@capstan/guarded-dial/socket-tables';

export class MachineSilent extends Error {
  override readonly name = 'MachineSilent';
  readonly code = 'ETIMEDOUT';
}

export interface SilenceWatch {
  /** Watches a connection until it is closed. */
  watch(socket: Socket, url: URL): void;
}

interface SilenceWatchOptions {
  readonly openSocket: DialGuard['openSocket'];
  readonly intervalMs: number;
  /** Of all connections. Default: the setting of Linux; null elsewhere. */
  readonly readUnacknowledged?: () => Unacknowledged | null;
}

export type Unacknowledged = ReadonlySet<PortPair>;

function readKernelTables(): Unacknowledged | null {
  const queues = readQueues();
  return (
    queues && new Set(queues.filter(({ unacknowledged }) => unacknowledged > 0).map(({ ports }) => ports))
  );
}

interface WatchedConnection {
  readonly socket: Socket;
  readonly url: URL;
  /** Number of bytes written when it last had nothing unacknowledged. */
  acknowledged: number;
  /** Connects in a row that were not answered. */
  unanswered: number;
}

interface Suspects {
  readonly connections: readonly WatchedConnection[];
  /** Whether the system named them. */
  readonly areNamed: boolean;
}

/** W1 */
function findSuspects(
  all: ReadonlySet<WatchedConnection>,
  readUnacknowledged: () => Unacknowledged | null,
): Suspects {
  const written = [...all].filter(({ socket, acknowledged }) => socket.bytesWritten > acknowledged);
  const named = written.length === 0 ? null : readUnacknowledged();
  if (named === null) return { connections: written, areNamed: false };
  const connections: WatchedConnection[] = [];
  for (const one of written) {
    if (named.has(portPairOf(one.socket))) connections.push(one);
    else Object.assign(one, { acknowledged: one.socket.bytesWritten, unanswered: 0 });
  }
  return { connections, areNamed: true };
}

/** @returns whether a connect is answered; null: it was not made */
function connectOnce({ openSocket, intervalMs }: SilenceWatchOptions, url: URL): Promise<boolean | null> {
  return new Promise((resolve) => {
    const socket = openSocket(url, intervalMs / 2);
    socket.once('connect', () => resolve(true)).once('connect', () => socket.destroy());
    socket.once('error', ({ code = '' }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED' || code === 'ECONNRESET') resolve(true);
      else resolve(silenceCodes.has(code) ? false : null);
    });
  });
}

/** W2, W3 @param suspects with the same address */
async function ask(options: SilenceWatchOptions, url: URL, suspects: Suspects): Promise<void> {
  const { connections, areNamed } = suspects;
  const written = connections.map(({ socket }) => socket.bytesWritten);
  const isAnswered = await connectOnce(options, url);
  if (isAnswered === null) return;
  for (const [at, one] of connections.entries()) {
    one.unanswered = isAnswered ? 0 : one.unanswered + 1;
    if (isAnswered && !areNamed) one.acknowledged = written[at] ?? 0;
    if (one.unanswered < 3) continue;
    one.socket.destroy(new MachineSilent('three connects to the instance were not answered'));
  }
}

export function createSilenceWatch(options: SilenceWatchOptions): SilenceWatch {
  const { intervalMs, readUnacknowledged = readKernelTables } = options;
  const all = new Set<WatchedConnection>();
  /** Addresses with a connect in progress. */
  const asked = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  const examine = (): void => {
    const { connections, areNamed } = findSuspects(all, readUnacknowledged);
    for (const [origin, url] of new Map(connections.map(({ url }) => [url.origin, url]))) {
      if (asked.has(origin)) continue;
      asked.add(origin);
      const suspects = { connections: connections.filter((one) => one.url.origin === origin), areNamed };
      void ask(options, url, suspects).finally(() => asked.delete(origin));
    }
  };

  return {
    watch: (socket, url) => {
      const watched = { socket, url, acknowledged: 0, unanswered: 0 };
      all.add(watched);
      timer ??= setInterval(examine, intervalMs);
      socket.once('close', () => {
        all.delete(watched);
        if (all.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      });
    },
  };
}
