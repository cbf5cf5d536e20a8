/** Positions of moments, 0 to 1. Idle ranges are folded to a narrow band. */

export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** The start and end of a long pause: the time between them can be folded. */
export function edgesOfSpan({ from, to }: TimeSpan): TimeSpan[] {
  return [
    { from, to: from },
    { from: to, to },
  ];
}

export interface TimeScale {
  readonly at: (moment: number) => number;
  readonly first: number;
  readonly last: number;
  /** The folded ranges. */
  readonly folds: readonly TimeSpan[];
}

const foldShare = 0.02;
const shortestFoldMs = 5_000;
const leastShare = 0.08;

function mergeSpans(spans: readonly TimeSpan[]): TimeSpan[] {
  const merged: { from: number; to: number }[] = [];
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else merged.push({ from, to });
  }
  return merged;
}

/** @param busy times of activity */
export function createTimeScale(busy: readonly TimeSpan[]): TimeScale {
  const merged = mergeSpans(busy);
  const first = merged[0]?.from ?? 0;
  const last = Math.max(first + 1, merged.at(-1)?.to ?? 0);
  const whole = last - first;
  const folds = merged.slice(1).flatMap(({ from }, index) => {
    const before = merged[index]?.to ?? from;
    const isLong = from - before > Math.max(shortestFoldMs, whole * leastShare);
    return isLong ? [{ from: before, to: from }] : [];
  });
  const foldedMs = folds.reduce((sum, { from, to }) => sum + to - from, 0);
  const shown = 1 - folds.length * foldShare;
  const perMs = shown / Math.max(1, whole - foldedMs);
  const at = (moment: number): number => {
    let place = (Math.min(last, Math.max(first, moment)) - first) * perMs;
    for (const { from, to } of folds) {
      if (moment <= from) break;
      const inside = Math.min(moment, to) - from;
      place += -inside * perMs + (foldShare * inside) / (to - from);
    }
    return place;
  };
  return { at, first, last, folds };
}

const niceMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000].concat(
  [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440, 2_880, 7_200, 14_400, 43_200].map(
    (minutes) => minutes * 60_000,
  ),
);
const mostTicks = 6;
const leastGap = 0.09;

/** Moments for an axis: round ones since the start, and the ends of folds; never too close to one another. */
export function ticksOf({ at, first, last, folds }: TimeScale): number[] {
  const starts = [first, ...folds.map(({ to }) => to)];
  const stretches = starts.map((from, index) => ({ from, to: folds[index]?.from ?? last }));
  const shownMs = stretches.reduce((sum, { from, to }) => sum + to - from, 0);
  const step = niceMs.find((ms) => shownMs / ms <= mostTicks) ?? shownMs;
  const ticks: number[] = [];
  const add = (moment: number): void => {
    const before = ticks.at(-1);
    if (before === undefined || at(moment) - at(before) >= leastGap) ticks.push(moment);
  };
  for (const { from, to } of stretches) {
    add(from);
    for (let tick = first + (Math.floor((from - first) / step) + 1) * step; tick <= to; tick += step)
      add(tick);
  }
  return ticks;
}
