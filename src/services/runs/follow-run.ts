/** A run as it goes on: its events, page by page or as they come, and its end. */
import { type EventPage, type RunEvent, terminalEvents } from '../../contracts/event.ts';
import { type RunState, terminalRunStates } from '../../contracts/run.ts';
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';
import type { Db } from '../../db/connect.ts';
import { confirmPosition, hasEventsBehind, type LogPosition, listEvents } from '../../db/run/event.ts';
import type { RunKey } from '../../db/run/run-control.ts';
import { decodeCursor, type PageRequest, refuseCursor, toPage } from '../cursor.ts';
import { type EventFeed, toRunEvent } from './event-feed.ts';

export interface FollowDependencies {
  readonly db: Db;
  readonly feed: EventFeed;
  /** @throws AppError `not_found` */
  readonly readState: (key: RunKey) => Promise<RunState>;
}

export interface EventQuery extends PageRequest {
  /** The `seq` of the last event that is known; a cursor says more. */
  readonly after: number;
}

function encodePosition({ seq, xid, id }: LogPosition): string {
  return `${seq}.${xid}.${id}`;
}

/** @throws AppError `request_invalid` */
function decodePosition(cursor: string): LogPosition {
  const [, seq, xid, id] = /^(\d{1,15})\.(\d{1,19})\.(\d{1,18})$/.exec(decodeCursor(cursor)) ?? [];
  if (seq === undefined || xid === undefined || id === undefined) throw refuseCursor();
  return { seq: Number(seq), xid, id };
}

/** A page that goes on from a cursor does not count the log from its beginning. */
async function readPage(db: Db, runId: string, { after, cursor, limit }: EventQuery): Promise<EventPage> {
  const from = cursor === undefined ? after : await confirmPosition(db, runId, decodePosition(cursor));
  const rows = await listEvents(db, runId, { before: null, after: from, limit: limit + 1 });
  return toPage(rows, limit, { key: encodePosition, item: toRunEvent });
}

export function createFollowRun({ db, feed, readState }: FollowDependencies) {
  /** Ends after the run's last event. */
  async function* watch(key: RunKey, after: number, signal: CancelSignal): AsyncGenerator<RunEvent> {
    const hasEnded = terminalRunStates.has(await readState(key));
    // What another transaction still holds back comes soon.
    if (hasEnded && !(await hasEventsBehind(db, key.run_id, after))) return;
    for await (const event of feed.watch(key.run_id, after, signal)) {
      yield event;
      if (terminalEvents.has(event.type)) return;
    }
  }

  return {
    watch,

    /** @throws AppError `not_found` */
    requireRun: async (key: RunKey): Promise<void> => void (await readState(key)),

    /** @throws AppError `not_found` */
    events: async (key: RunKey, query: EventQuery): Promise<EventPage> => {
      await readState(key);
      return readPage(db, key.run_id, query);
    },

    /** Comes back when the run has ended, when the time is over, or when nobody waits any more. */
    untilEnd: async (key: RunKey, timeoutMs: number, signal: CancelSignal): Promise<void> => {
      const limit = new CancelSource();
      const stopListening = onCancel(signal, () => limit.abort('gone'));
      const timer = setTimeout(() => limit.abort('late'), timeoutMs);
      try {
        for await (const event of watch(key, 0, limit)) if (terminalEvents.has(event.type)) break;
      } finally {
        clearTimeout(timer);
        stopListening();
      }
    },
  };
}
