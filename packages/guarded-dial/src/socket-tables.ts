/** The kernel of Linux about the connections of this machine: what each has not sent, and not read. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Arrival, ArrivalLook } from '@capstan/core/call/freezes';

/** A connection by its two ports, in hexadecimal. Two connections may have the same, to different machines. */
export type PortPair = `${string}:${string}`;

export function portPairOf({ localPort = 0, remotePort = 0 }: Socket): PortPair {
  const [local, remote] = [localPort, remotePort].map((port) =>
    port.toString(16).toUpperCase().padStart(4, '0'),
  );
  return `${local}:${remote}`;
}

/** A line of `/proc/net/tcp` with state, `tx_queue` and `rx_queue`; those of a listener (0A) are its backlog. */
const connectionLine =
  /^ *\d+: [\dA-F]+:([\dA-F]{4}) [\dA-F]+:([\dA-F]{4}) (?!0A)([\dA-F]{2}) ([\dA-F]{8}):([\dA-F]{8})/gm;
/** The other side has closed it. */
const closeWait = '08';

interface SocketQueues {
  readonly ports: PortPair;
  /** Bytes that are not acknowledged. */
  readonly unacknowledged: number;
  /** Bytes that have come and are not read. The end of the connection is one, unless others are before it. */
  readonly unread: number;
}

/** The kernel counts the end as a byte. An instance closes a connection long after its answer. */
function unreadOf(state: string | undefined, queue: number): number {
  return state === closeWait && queue > 1 ? queue - 1 : queue;
}

/** Reads synchronously: look-ups of names may occupy all threads that read files. @returns null elsewhere */
export function readQueues(): readonly SocketQueues[] | null {
  try {
    const tables = ['tcp', 'tcp6'].map((name) => readFileSync(`/proc/self/net/${name}`, 'latin1'));
    const lines = tables.flatMap((table) => [...table.matchAll(connectionLine)]);
    return lines.map(([, local, remote, state, unacknowledged = '', unread = '']) => ({
      ports: `${local}:${remote}` as PortPair,
      unacknowledged: Number.parseInt(unacknowledged, 16),
      unread: unreadOf(state, Number.parseInt(unread, 16)),
    }));
  } catch {
    return null;
  }
}

/** Looks at connections without a reader, and notes when more has come. */
export class ArrivalWatch {
  readonly #unread = new Map<PortPair, number>();
  readonly #read: typeof readQueues;

  constructor(read: typeof readQueues = readQueues) {
    this.#read = read;
  }

  /** @param lastMs of the look before @returns null where the system gives no figures */
  look(lastMs: number, nowMs: number): ArrivalLook | null {
    const queues = this.#read();
    if (queues === null) return null;
    const arrivals: Arrival[] = [];
    for (const { ports, unread } of queues) {
      if (unread <= (this.#unread.get(ports) ?? 0)) continue;
      this.#unread.set(ports, unread);
      arrivals.push({ connection: ports, afterMs: lastMs, byMs: nowMs });
    }
    return { atMs: nowMs, arrivals };
  }

  /** The process reads again. */
  forget(): void {
    this.#unread.clear();
  }
}
