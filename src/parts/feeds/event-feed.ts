/**
 * One poll feeds every watcher of this process; it is fast while there are events. A watcher first reads the log up to
 * a horizon, then receives the result of each later poll; horizons meet without gap or overlap. A watcher that reads
 * too slowly is no longer fed: its queue is dropped, and it reads the log again from its position.
 */

import type { CancelSignal } from '@capstan/core/cancellation';
import { RunEvent } from '@capstan/core/contracts/event';
import { toWire } from '@capstan/core/contracts/to-wire';
import type { Logger } from 'pino';
import type { Db } from '../../db/connect.ts';
import {
  findPosition,
  type LogPosition,
  listEvents,
  listNewEvents,
  type NumberedEventRow,
  readHorizon,
} from '../../db/run/event.ts';
import { createFollowPoll, type Timing } from './follow-poll.ts';

export interface EventFeed {
  /** Events after number `after`, then new ones as they happen, until `signal` aborts. */
  watch(runId: string, after: number, signal: CancelSignal): AsyncIterable<RunEvent>;
  close(): void;
}

interface Watcher {
  readonly runId: string;
  from: string;
  queue: Omit<NumberedEventRow, 'seq'>[];
  /** More events were queued than the limit. */
  isBehind: boolean;
  wake: () => void;
}

const pageSize = 1_000;
/** The most queued events of one watcher; each is at most a few KiB. */
const mostQueued = 1_000;

export function toRunEvent(row: NumberedEventRow): RunEvent {
  return toWire(RunEvent, row);
}

/** Queues new events for their watchers. @returns whether there was one */
async function feed(db: Db, watchers: readonly Watcher[]): Promise<boolean> {
  const to = await readHorizon(db);
  const from = watchers.reduce(
    (least, watcher) => (BigInt(watcher.from) < BigInt(least) ? watcher.from : least),
    to,
  );
  if (from === to) return false;
  let isNews = false;
  const rows = await listNewEvents(db, [...new Set(watchers.map(({ runId }) => runId))], { from, to });
  for (const watcher of watchers) {
    const news = rows.filter(
      (row) => row.run_id === watcher.runId && BigInt(row.xid) >= BigInt(watcher.from),
    );
    if (BigInt(watcher.from) < BigInt(to)) watcher.from = to;
    isNews ||= news.length > 0;
    if (news.length === 0 || watcher.isBehind) continue;
    enqueue(watcher, news);
    watcher.wake();
  }
  return isNews;
}

async function* readLog(
  db: Db,
  runId: string,
  span: { readonly after: LogPosition; readonly before: string },
) {
  let { after } = span;
  for (;;) {
    const page = await listEvents(db, runId, { before: span.before, after, limit: pageSize });
    yield* page;
    after = page.at(-1) ?? after;
    if (page.length < pageSize) return;
  }
}

/** Yields the log from a position on, then the queued events, until `signal` aborts. */
async function* follow(
  db: Db,
  watcher: Watcher,
  { after, signal }: { readonly after: LogPosition; readonly signal: CancelSignal },
) {
  let position = after;
  while (!signal.aborted) {
    const horizon = await readHorizon(db);
    Object.assign(watcher, { from: horizon, queue: [], isBehind: false });
    for await (const row of readLog(db, watcher.runId, { after: position, before: horizon })) {
      position = row;
      yield toRunEvent(row);
    }
    while (!signal.aborted && !watcher.isBehind) {
      const row = watcher.queue.shift();
      if (row === undefined) {
        await somethingNew(watcher, signal);
        continue;
      }
      position = { seq: position.seq + 1, xid: row.xid, id: row.id };
      yield toRunEvent({ ...row, seq: position.seq });
    }
  }
}

export function createEventFeed({
  db,
  logger,
  timing,
}: {
  readonly db: Db;
  readonly logger: Logger;
  readonly timing?: Timing;
}): EventFeed {
  const watchers = new Set<Watcher>();
  const rounds = createFollowPoll({
    poll: () => feed(db, [...watchers]),
    isFollowed: () => watchers.size > 0,
    onError: (error) => logger.warn({ err: error }, 'events could not be read; retrying'),
    ...(timing === undefined ? {} : { timing }),
  });

  return {
    watch: async function* (runId, after, signal) {
      const position = await findPosition(db, runId, after);
      const from = await readHorizon(db);
      const watcher: Watcher = { runId, from, queue: [], isBehind: false, wake: () => undefined };
      watchers.add(watcher);
      rounds.quicken();
      try {
        yield* follow(db, watcher, { after: position, signal });
      } finally {
        watchers.delete(watcher);
      }
    },
    close: () => {
      rounds.stop();
      watchers.clear();
    },
  };
}

function enqueue(watcher: Watcher, news: Watcher['queue']): void {
  if (watcher.queue.length + news.length > mostQueued) {
    watcher.isBehind = true;
    watcher.queue = [];
  } else watcher.queue.push(...news);
}

function somethingNew(watcher: Watcher, signal: CancelSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    watcher.wake = done;
    signal.addEventListener('abort', done);
    if (watcher.queue.length > 0 || watcher.isBehind || signal.aborted) done();
  });
}
