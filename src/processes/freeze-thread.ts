/**
 * A thread beside the event loop of its process. It sees within a second that the process does not turn. As long as that
 * lasts, it renews the leases of the calls that the process has open, and notes when their answers arrive. It dies with
 * the process, so the leases of a process that is gone run out. A process that does not turn for `longestMs` counts as
 * gone too.
 */
import { workerData } from 'node:worker_threads';
import { beatMs } from '@capstan/core/call/freezes';
import { ArrivalWatch } from '@capstan/guarded-dial/socket-tables';
import { createProcessLeases, type ProcessLeases } from '../db/attempt/process-leases.ts';
import type { KeyHold } from '../db/idempotency.ts';
import { clockMs, type FreezeReport, type FreezeThreadData, type KeyNote } from './freeze-watch.ts';

const { beats, port, databaseUrl, token, leaseMs, longestMs } = workerData as FreezeThreadData;
/** After one missed beat: looks cost little. */
const lookAfterMs = 2 * beatMs;
const renewAfterMs = Math.min(1_000, leaseMs / 3);

function report(message: FreezeReport): void {
  port.postMessage(message);
}

const keys = new Map<string, KeyHold>();
port.on('message', (note: KeyNote) => {
  if (note.kind === 'kept') keys.set(note.hold.holder, note.hold);
  else keys.delete(note.holder);
});

/** Renews at once, then every third of a lease; sooner after a failure. */
class ThreadRenewal {
  readonly #leases: ProcessLeases;
  #dueAtMs = Number.NEGATIVE_INFINITY;
  #isOpen = false;
  #isBusy = false;

  constructor(leases: ProcessLeases) {
    this.#leases = leases;
  }

  renew(nowMs: number): void {
    if (this.#isBusy || nowMs < this.#dueAtMs) return;
    this.#isBusy = true;
    this.#isOpen = true;
    this.#dueAtMs = nowMs + leaseMs / 3;
    this.#leases
      .renew([...keys.values()])
      .then((renewed) => report({ kind: 'renewed', renewed }))
      .catch((error: Error) => {
        this.#dueAtMs = nowMs + leaseMs / 30;
        report({ kind: 'failed', message: error.message });
      })
      .finally(() => {
        this.#isBusy = false;
      });
  }

  /** The process turns again, and renews by itself. */
  end(): void {
    if (!this.#isOpen || this.#isBusy) return;
    this.#isOpen = false;
    this.#dueAtMs = Number.NEGATIVE_INFINITY;
    void this.#leases.close();
  }
}

const renewal = new ThreadRenewal(createProcessLeases(databaseUrl, token, leaseMs));
const watch = new ArrivalWatch();
let seen = Atomics.load(beats, 0);
let seenAtMs = clockMs();
let lookedAtMs = seenAtMs;

function look(nowMs: number): void {
  const found = watch.look(lookedAtMs, nowMs);
  if (found !== null) report({ kind: 'look', ...found });
}

setInterval(() => {
  const nowMs = clockMs();
  const beat = Atomics.load(beats, 0);
  if (beat !== seen) {
    seen = beat;
    seenAtMs = nowMs;
    watch.forget();
    renewal.end();
  } else if (nowMs - seenAtMs < longestMs) {
    if (nowMs - seenAtMs >= lookAfterMs) look(nowMs);
    if (nowMs - seenAtMs >= renewAfterMs) renewal.renew(nowMs);
  }
  lookedAtMs = nowMs;
}, beatMs);
