/**
 * Writes the claims and ends of attempts of one process, by batch writers. A durable write waits for the disk; a
 * relaxed one, for a slot on a free instance, does not and may be lost in a crash. Each statement first writes the
 * ends, then the claims. Calls on leased slots are written after them, by a writer of their own. Ends are retried until
 * they are written; each is reported once.
 */

import { LiveList } from '@capstan/core/live-list';
import type { Logger } from 'pino';
import {
  type AttemptEnd,
  type Claim,
  type ClaimResult,
  type EndResult,
  preventClaim,
  settleAndClaim,
} from '../../db/attempt/attempt.ts';
import { type LeasedCall, recordCalls } from '../../db/attempt/slot-lease.ts';
import type { Db } from '../../db/connect.ts';
import type { PartBase } from '../part.ts';

/**
 * Writes items to the database in micro-batches: items of one turn of the event loop go out together, and items that
 * arrive during a statement wait for its end. So a lone caller does not wait, and batches grow with the load.
 * Deferrable items go out with the next one, or without it after `patienceMs`. A batch that fails because of one item is
 * repeated item by item, so that a bad item does not fail the others.
 */
interface BatchWriterOptions<Item, Result> {
  /** @returns one result per item, in order */
  readonly send: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly maxItems: number;
  readonly patienceMs: number;
  /** Whether a single item may be the reason; otherwise the whole batch fails. */
  readonly isItemsFault: (error: unknown) => boolean;
}

interface QueuedItem<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** @returns settles the items of the batch */
async function writeBatch<Item, Result>(
  writer: Pick<BatchWriterOptions<Item, Result>, 'send' | 'isItemsFault'>,
  batch: readonly QueuedItem<Item, Result>[],
): Promise<() => void> {
  try {
    const results = await writer.send(batch.map(({ item }) => item));
    return () => {
      for (const [at, { resolve }] of batch.entries()) resolve(results[at] as Result);
    };
  } catch (error) {
    if (batch.length > 1 && writer.isItemsFault(error)) {
      for (const one of batch) (await writeBatch(writer, [one]))();
      return () => undefined;
    }
    return () => {
      for (const { reject } of batch) reject(error);
    };
  }
}

export function createBatchWriter<Item, Result>(options: BatchWriterOptions<Item, Result>) {
  const { maxItems, patienceMs } = options;
  const queue: QueuedItem<Item, Result>[] = [];
  let isBusy = false;
  let isDue = false; // an item waits that is not deferrable, or that was deferred long enough
  let patience: NodeJS.Timeout | null = null;

  const work = async (): Promise<void> => {
    let tell = (): void => undefined;
    while (queue.length > 0 && (isDue || queue.length >= maxItems)) {
      const written = writeBatch(options, queue.splice(0, maxItems));
      isDue &&= queue.length > 0;
      setImmediate(tell); // after the next batch is sent: the database works while these items continue
      tell = await written;
    }
    isBusy = false;
    if (queue.length > 0) patience ??= setTimeout(start, patienceMs);
    tell();
  };

  const start = (): void => {
    if (patience !== null) clearTimeout(patience);
    patience = null;
    isDue = true;
    if (isBusy) return;
    isBusy = true;
    setImmediate(work);
  };

  return {
    push: (item: Item, isDeferrable = false): Promise<Result> =>
      new Promise((resolve, reject) => {
        queue.push({ item, resolve, reject });
        if (!isDeferrable || queue.length >= maxItems) start();
        else if (!isBusy) patience ??= setTimeout(start, patienceMs);
      }),
  };
}

interface StoreRetries {
  /** @throws the last error of the write, when it is given up */
  retryUntilStored<Result>(write: () => Promise<Result>): Promise<Result>;
  /** A write that does not succeed within this time and some seconds is given up. */
  retire(graceMs: number): void;
  /** Retires at once, and resolves when no write is in flight. */
  close(): Promise<void>;
}

interface StoreRetryOptions {
  /** Whether the content of the write may be the reason. */
  readonly isItemsFault: (error: unknown) => boolean;
  readonly logger: Logger;
}

const firstPauseMs = 250;
/** Retries of a write that the database may never accept end after this time. */
const doubtMs = 20_000;
/** After the shutdown begins, retries continue for this time. */
const graceMs = 8_000;
const longestPauseMs = 4_000;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Retries writes until they are stored, so that a long answer or a call's reservation is not lost while the database is
 * away. A write has to be idempotent. A write that the database refuses for its content is given up after a while, any
 * other one only at shutdown.
 */
export function createStoreRetries({ isItemsFault, logger }: StoreRetryOptions): StoreRetries {
  const open = new LiveList<Promise<unknown>>();
  let endsAt = Number.POSITIVE_INFINITY;

  const repeat = async <Result>(write: () => Promise<Result>): Promise<Result> => {
    const startedAt = performance.now();
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        return await write();
      } catch (error) {
        const doubtEndsAt = isItemsFault(error) ? startedAt + doubtMs : endsAt;
        const leftMs = Math.min(doubtEndsAt, endsAt) - performance.now();
        if (leftMs <= 0) throw error;
        logger.warn({ err: error }, 'the end of a call could not be stored; retrying');
        await pause(Math.min(pauseMs, leftMs));
      }
    }
  };
  const retire = (afterMs: number): void => {
    endsAt = Math.min(endsAt, performance.now() + afterMs + graceMs);
  };
  return {
    retryUntilStored: (write) => {
      const task = repeat(write);
      const entry = open.add(task);
      const end = (): boolean => open.remove(entry);
      task.then(end, end);
      return task;
    },
    retire,
    close: async () => {
      retire(0);
      while (open.size > 0) await Promise.allSettled(open.members());
    },
  };
}

type Item =
  | { readonly kind: 'claim'; readonly claim: Claim }
  | { readonly kind: 'end'; readonly end: AttemptEnd };

/** Whether the end of a claim must survive a crash of the database: a step or money waits for it. */
export function hasDurableEnd({ step, reserved_nano }: Claim): boolean {
  return step !== null || reserved_nano > 0n;
}

const maxItems = 64;
const patienceMs = 10;
const recordPatienceMs = 20;
/** A record is small beside a claim. */
const maxRecords = 256;
/** A longer output, or content, in characters, is written alone. */
const largeOutput = 65_536;

function isLarge({ output = null, content }: AttemptEnd): boolean {
  return [output, content].some((one) => one !== null && JSON.stringify(one).length > largeOutput);
}

/**
 * SQLSTATE classes for data, constraints, deadlocks and raised exceptions; all others concern the database or the
 * connection.
 */
function isItemsFault(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(22|23|40|42|P0)\w{3}$/.test(String(error.code));
}

async function send(
  db: Db,
  items: readonly Item[],
  isDurable: boolean,
): Promise<(ClaimResult | EndResult)[]> {
  const ends: AttemptEnd[] = [];
  const claims: Claim[] = [];
  for (const item of items) {
    if (item.kind === 'end') ends.push(item.end);
    else claims.push(item.claim);
  }
  const results = await settleAndClaim(db, { ends, claims }, isDurable);
  const next = { end: 0, claim: 0 };
  return items.map(({ kind }) =>
    kind === 'end' ? (results.ends[next.end++] as EndResult) : (results.claims[next.claim++] as ClaimResult),
  );
}

function createItemWriter(db: Db, isDurable: boolean) {
  return createBatchWriter<Item, ClaimResult | EndResult>({
    send: (items) => send(db, items, isDurable),
    maxItems,
    patienceMs,
    isItemsFault,
  });
}

/** Its results show whether an open call has a slot. */
function createRecordWriter(db: Db) {
  return createBatchWriter<LeasedCall, boolean>({
    send: async (calls) => {
      const lost = await recordCalls(db, calls);
      return calls.map(({ claim }) => !lost.has(claim.attempt_id));
    },
    maxItems: maxRecords,
    patienceMs: recordPatienceMs,
    isItemsFault,
  });
}

export type AttemptWriter = ReturnType<typeof createAttemptWriter>;

export function createAttemptWriter({ db, logger }: PartBase) {
  const { retryUntilStored, retire, close } = createStoreRetries({ isItemsFault, logger });
  const writers = { durable: createItemWriter(db, true), relaxed: createItemWriter(db, false) };
  const records = createRecordWriter(db);
  const writerOf = (isDurable: boolean) => (isDurable ? writers.durable : writers.relaxed);
  const settle = async (end: AttemptEnd, isDurable: boolean, isDeferrable: boolean): Promise<EndResult> => {
    const item: Item = { kind: 'end', end };
    const result = isLarge(end)
      ? (await send(db, [item], isDurable))[0]
      : await writerOf(isDurable).push(item, isDeferrable);
    return result as EndResult;
  };

  return {
    claim: async (claim: Claim, isDurable: boolean): Promise<ClaimResult> =>
      (await writerOf(isDurable).push({ kind: 'claim', claim })) as ClaimResult,
    /** Retried until it is stored. @param isDeferrable no caller waits for it: it may go with the next claim */
    settle: (end: AttemptEnd, isDurable: boolean, isDeferrable: boolean): Promise<EndResult> =>
      retryUntilStored(() => settle(end, isDurable, isDeferrable)),
    /** Retried until it is stored. A claim whose response was lost is prevented, or ended if it was made. */
    withdraw: (claim: Claim, end: AttemptEnd, isDurable: boolean): Promise<void> =>
      retryUntilStored(async () => {
        if (!(await preventClaim(db, claim))) await settle(end, isDurable, false);
      }),
    /**
     * Writes a call on a leased slot, open or ended. Retried until it is stored.
     * @param isDeferrable no caller waits for it: it is written within 50 ms
     * @returns false: the call is open and has no slot any more
     */
    record: (call: LeasedCall, isDeferrable: boolean): Promise<boolean> =>
      retryUntilStored(() => records.push(call, isDeferrable)),
    /** A write that does not succeed within this time and some seconds is given up. */
    retire,
    /** Resolves when everything is written, or given up at shutdown. */
    close,
  };
}
