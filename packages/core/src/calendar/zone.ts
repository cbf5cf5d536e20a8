/** What clocks show in a time zone, and when they show it. */

const minuteMs = 60_000;
const dayMs = 86_400_000;

/** Converts to local wall-clock time, written as if it were UTC. @throws RangeError for an unknown zone */
function createWallClock(timeZone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  });
  return (ms) => {
    const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const of = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
    return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'));
  };
}

/** How far local time is ahead of UTC around a date: `before` until the moment `turn`, and `after` from then on. */
export interface Offsets {
  readonly before: number;
  readonly after: number;
  /** Infinity: the clock does not change. */
  readonly turn: number;
}

export interface Zone {
  /** @param date local, written as midnight UTC */
  offsetsOn(date: number): Offsets;
  dateOf(ms: number): number;
}

/** @throws RangeError for an unknown zone */
export function openZone(timeZone: string): Zone {
  const wallClock = createWallClock(timeZone);
  const known = new Map<number, number>();
  const offsetAt = (ms: number): number => {
    const offset = known.get(ms) ?? wallClock(ms) - ms;
    known.set(ms, offset);
    return offset;
  };
  /** The first minute with the offset that holds at `end`. */
  const findTurn = (start: number, end: number): number => {
    let [before, after] = [start, end];
    while (after - before > minuteMs) {
      const middle = before + Math.floor((after - before) / 2 / minuteMs) * minuteMs;
      if (wallClock(middle) - middle === offsetAt(end)) after = middle;
      else before = middle;
    }
    return after;
  };
  return {
    dateOf: (ms) => Math.floor(wallClock(ms) / dayMs) * dayMs,
    offsetsOn: (date) => {
      const [start, end] = [date - dayMs, date + 2 * dayMs];
      const [before, after] = [offsetAt(start), offsetAt(end)];
      return { before, after, turn: before === after ? Number.POSITIVE_INFINITY : findTurn(start, end) };
    },
  };
}

/** The moments at which the clock shows a local time, oldest first: none if it is skipped, two if it is repeated. */
export function momentsOf(wall: number, { before, after, turn }: Offsets): readonly number[] {
  const [first, second] = [wall - before, wall - after];
  return [...(first < turn ? [first] : []), ...(second >= turn ? [second] : [])];
}
