/** The state of schedules in Temporal, as this process knows it. */
import { LRUCache } from 'lru-cache';
import type { TemporalSchedules, TemporalStanding } from '../../clients/temporal/schedules.ts';
import type { ScheduleRow } from '../../db/schedule.ts';

/** As `TemporalSchedules.standing`. */
export type AskStanding = (row: ScheduleRow, ms: number) => Promise<TemporalStanding | null>;

const askedAtOnce = 8;

const mostKept = 10_000;

const keptMs = 10_000;

export interface StandingOptions {
  readonly now?: () => number;
}

/**
 * Asks for the state of schedules in Temporal, for lists. It limits the open requests to Temporal for all callers
 * together and keeps an answer for some seconds.
 */
export function createAskStanding(
  schedules: Pick<TemporalSchedules, 'standing'>,
  { now = Date.now }: StandingOptions = {},
): AskStanding {
  const kept = new LRUCache<
    string,
    { readonly at: number; readonly answer: Promise<TemporalStanding | null> }
  >({
    max: mostKept,
  });
  const waiting: (() => void)[] = [];
  let asked = 0;

  /** Fails when its turn does not come in time. */
  const ask: AskStanding = async (row, ms) => {
    const began = now();
    if (asked >= askedAtOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    asked += 1;
    try {
      const left = ms - (now() - began);
      if (left <= 0) throw new Error('Temporal was not asked in time');
      return await schedules.standing(row, left);
    } finally {
      asked -= 1;
      waiting.shift()?.();
    }
  };

  return async (row, ms) => {
    const key = `${row.schedule_id} ${row.version}`;
    const found = kept.get(key);
    if (found !== undefined && now() - found.at < keptMs) return found.answer;
    const answer = ask(row, ms);
    kept.set(key, { at: now(), answer });
    const isWrong = (): unknown => kept.get(key)?.answer === answer && kept.delete(key);
    answer.then((standing) => standing === null && isWrong(), isWrong); // the next caller asks again
    return answer;
  };
}
