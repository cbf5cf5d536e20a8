/**
 * Knows when this process does not turn, and has a thread that holds its leases meanwhile (freeze-thread.ts). In ordinary
 * life that costs ten beats a second, and nothing for a call. The rules are in core/call/freezes.ts.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { type ArrivalLook, beatMs, type FreezeClock, FreezeLog } from '@capstan/core/call/freezes';
import type { Logger } from 'pino';
import type { KeyHold } from '../db/idempotency.ts';

/** The entry file of the thread: the source file, or its compiled form. */
const threadEntry = new URL(
  import.meta.url.endsWith('.ts') ? './freeze-thread.source.mjs' : './freeze-thread.js',
  import.meta.url,
);

/** A process that does not turn for so long loses its calls, as one that is gone. */
export const longestFreezeMs = 300_000;

/** Shorter freezes are not worth a line of the log. */
const loggedMs = 1_000;
const restartMs = 5_000;

export interface FreezeThreadData {
  /** Counts the beats of the process. */
  readonly beats: Int32Array<SharedArrayBuffer>;
  readonly port: MessagePort;
  readonly databaseUrl: string;
  /** Of the attempts of the process. */
  readonly token: string;
  readonly leaseMs: number;
  readonly longestMs: number;
}

/** A message to the thread: a key that the process may hold from now on, or no longer holds. */
export type KeyNote =
  | { readonly kind: 'kept'; readonly hold: KeyHold }
  | { readonly kind: 'left'; readonly holder: string };

/** A message of the thread; times by `clockMs`. */
export type FreezeReport =
  | ({ readonly kind: 'look' } & ArrivalLook)
  | { readonly kind: 'renewed'; readonly renewed: number }
  | { readonly kind: 'failed'; readonly message: string };

/** The clock that all threads of a process have in common. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export interface FreezeWatch extends FreezeClock {
  /** Renews an Idempotency-Key too while the process does not turn, with or without an attempt. @returns ends that */
  readonly keepKey: (hold: KeyHold) => () => void;
  /** Whether its thread runs and has sent a message. */
  hasThread(): boolean;
  close(): Promise<void>;
}

interface FreezeWatchOptions extends Omit<FreezeThreadData, 'beats' | 'port'> {
  readonly logger: Logger;
}

class WatchedLoop implements FreezeWatch {
  readonly #logger: Logger;
  readonly #log = new FreezeLog(performance.now(), Date.now());
  readonly #beats = new Int32Array(new SharedArrayBuffer(4));
  readonly #timer: NodeJS.Timeout;
  readonly #data: Omit<FreezeThreadData, 'port'>;
  #reports!: MessagePort;
  #thread!: Worker;
  readonly #keys = new Map<string, KeyHold>();
  #renewed = 0;
  #failure: string | undefined;
  #hasThread = false;
  #isClosed = false;

  constructor({ logger, ...data }: FreezeWatchOptions) {
    this.#logger = logger;
    this.#data = { ...data, beats: this.#beats };
    this.#start();
    this.#timer = setInterval(() => this.#beat(), beatMs).unref();
  }

  arrivedAt(nowMs: number, reading: Parameters<FreezeClock['arrivedAt']>[1]): number {
    if (!this.#log.isCatchingUp(nowMs)) return nowMs; // as a rule
    this.#hear();
    return this.#log.arrivedAt(nowMs, reading);
  }

  isCatchingUp(nowMs: number): boolean {
    return this.#log.isCatchingUp(nowMs);
  }

  awakeMs(nowMs: number): number {
    return this.#log.awakeMs(nowMs);
  }

  readonly keepKey = (hold: KeyHold): (() => void) => {
    this.#keys.set(hold.holder, hold);
    this.#note({ kind: 'kept', hold });
    return () => {
      this.#keys.delete(hold.holder);
      this.#note({ kind: 'left', holder: hold.holder });
    };
  };

  #note(note: KeyNote): void {
    this.#reports.postMessage(note);
  }

  hasThread(): boolean {
    this.#hear();
    return this.#hasThread;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#thread.terminate();
  }

  #start(): void {
    const { port1, port2 } = new MessageChannel();
    const workerData: FreezeThreadData = { ...this.#data, port: port2 };
    this.#reports = port1;
    port1.unref();
    this.#thread = new Worker(threadEntry, { execArgv: [], workerData, transferList: [port2] });
    this.#thread.unref();
    for (const hold of this.#keys.values()) this.#note({ kind: 'kept', hold });
    this.#thread.on('error', (error) =>
      this.#logger.warn({ err: error }, 'the thread that holds leases failed'),
    );
    this.#thread.once('exit', () => {
      if (!this.#isClosed) setTimeout(() => this.#isClosed || this.#start(), restartMs).unref();
    });
  }

  #beat(): void {
    Atomics.add(this.#beats, 0, 1);
    this.#hear();
    const frozenMs = Math.round(this.#log.beat(performance.now(), Date.now()));
    if (frozenMs >= loggedMs) {
      const found = { frozen_ms: frozenMs, leases_renewed: this.#renewed, failure: this.#failure };
      this.#logger.warn(found, 'the event loop was blocked; a thread renewed the leases of open calls');
    }
    this.#renewed = 0;
    this.#failure = undefined;
  }

  #hear(): void {
    const offsetMs = performance.now() - clockMs();
    for (
      let heard = receiveMessageOnPort(this.#reports);
      heard;
      heard = receiveMessageOnPort(this.#reports)
    ) {
      const told = heard.message as FreezeReport;
      this.#hasThread = true;
      if (told.kind === 'look') this.#log.note(toOwnClock(told, offsetMs));
      else if (told.kind === 'renewed') this.#renewed = Math.max(this.#renewed, told.renewed);
      else this.#failure = told.message;
    }
  }
}

function toOwnClock({ atMs, arrivals }: ArrivalLook, offsetMs: number): ArrivalLook {
  return {
    atMs: atMs + offsetMs,
    arrivals: arrivals.map(({ connection, afterMs, byMs }) => ({
      connection,
      afterMs: afterMs + offsetMs,
      byMs: byMs + offsetMs,
    })),
  };
}

export function createFreezeWatch(options: FreezeWatchOptions): FreezeWatch {
  return new WatchedLoop(options);
}
