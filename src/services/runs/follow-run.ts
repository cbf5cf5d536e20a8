/** A run as it goes on: its events, page by page or as they come, and its end. */
import { type EventPage, type RunEvent, terminalEvents } from '../../contracts/event.ts';
import { type RunState, terminalRunStates } from '../../contracts/run.ts';
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';
import type { Db } from '../../db/connect.ts';
import { listEvents } from '../../db/run/event.ts';
import type { RunKey } from '../../db/run/run-control.ts';
import { type EventFeed, toRunEvent } from './event-feed.ts';

export interface FollowDependencies {
  readonly db: Db;
  readonly feed: EventFeed;
  /** @throws AppError `not_found` */
  readonly readState: (key: RunKey) => Promise<RunState>;
}

export interface EventQuery {
  /** The `seq` of the last event that is known. */
  readonly after: number;
  readonly limit: number;
}

export function createFollowRun({ db, feed, readState }: FollowDependencies) {
  /** Ends after the run's last event. */
  async function* watch(key: RunKey, after: number, signal: CancelSignal): AsyncGenerator<RunEvent> {
    const state = await readState(key);
    const [next] = await listEvents(db, key.run_id, { before: null, after, limit: 1 });
    if (next === undefined && terminalRunStates.has(state)) return;
    for await (const event of feed.watch(key.run_id, after, signal)) {
      yield event;
      if (terminalEvents.has(event.type)) return;
    }
  }

  return {
    watch,

    events: async (key: RunKey, { after, limit }: EventQuery): Promise<EventPage> => {
      await readState(key);
      const items = (await listEvents(db, key.run_id, { before: null, after, limit })).map(toRunEvent);
      return { items, next_after: items.at(-1)?.seq ?? after };
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
