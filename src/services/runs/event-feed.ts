/**
 * Feeds every watcher of this process from one poll. A watcher first reads the log up to a horizon, then
 * receives what each later poll brings; horizons meet without gap or overlap.
 */
import type { Logger } from 'pino';
import type { RunEvent } from '../../contracts/event.ts';
import type { CancelSignal } from '../../core/cancellation.ts';
import type { Db } from '../../db/connect.ts';
import {
  type EventRow,
  listEvents,
  listNewEvents,
  type NumberedEventRow,
  readHorizon,
} from '../../db/run/event.ts';

export interface EventFeed {
  /** Events after number `after`, then new ones as they happen, until `signal` aborts. */
  watch(runId: string, after: number, signal: CancelSignal): AsyncIterable<RunEvent>;
  stop(): void;
}

interface Watcher {
  readonly runId: string;
  from: string;
  readonly queue: EventRow[];
  wake: () => void;
}

const pageSize = 1_000;

export function toRunEvent({
  seq,
  at,
  run_id,
  type,
  step_id,
  item,
  attempt,
  data,
}: NumberedEventRow): RunEvent {
  return {
    seq,
    at: at.toISOString(),
    run_id,
    type,
    ...(step_id === null ? {} : { step_id }),
    ...(item === null ? {} : { item }),
    ...(attempt === null ? {} : { attempt }),
    data,
  };
}

export function createEventFeed({
  db,
  intervalMs,
  logger,
}: {
  readonly db: Db;
  readonly intervalMs: number;
  readonly logger: Logger;
}): EventFeed {
  const watchers = new Set<Watcher>();
  let timer: NodeJS.Timeout | null = null;

  const poll = async (): Promise<void> => {
    const present = [...watchers];
    const to = await readHorizon(db);
    const from = present.reduce(
      (least, watcher) => (BigInt(watcher.from) < BigInt(least) ? watcher.from : least),
      to,
    );
    if (from === to) return;
    const rows = await listNewEvents(db, [...new Set(present.map(({ runId }) => runId))], from, to);
    for (const watcher of present) {
      const news = rows.filter(
        (row) => row.run_id === watcher.runId && BigInt(row.xid) >= BigInt(watcher.from),
      );
      watcher.from = to;
      if (news.length === 0) continue;
      watcher.queue.push(...news);
      watcher.wake();
    }
  };

  const schedule = (): void => {
    timer ??= setTimeout(() => {
      poll()
        .catch((error: unknown) => logger.warn({ err: error }, 'events could not be read; trying again'))
        .finally(() => {
          timer = null;
          if (watchers.size > 0) schedule();
        });
    }, intervalMs);
  };

  return {
    watch: async function* (runId, after, signal) {
      const horizon = await readHorizon(db);
      const watcher: Watcher = { runId, from: horizon, queue: [], wake: () => undefined };
      watchers.add(watcher);
      schedule();
      let seq = after;
      try {
        for (;;) {
          const page = await listEvents(db, runId, { before: horizon, after: seq, limit: pageSize });
          for (const row of page) yield toRunEvent(row);
          seq = page.at(-1)?.seq ?? seq;
          if (page.length < pageSize) break;
        }
        while (!signal.aborted) {
          const row = watcher.queue.shift();
          if (row === undefined) await somethingNew(watcher, signal);
          else {
            seq += 1;
            yield toRunEvent({ ...row, seq });
          }
        }
      } finally {
        watchers.delete(watcher);
      }
    },
    stop: () => {
      if (timer !== null) clearTimeout(timer);
      watchers.clear();
    },
  };
}

function somethingNew(watcher: Watcher, signal: CancelSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    watcher.wake = done;
    signal.addEventListener('abort', done);
    if (watcher.queue.length > 0 || signal.aborted) done();
  });
}
