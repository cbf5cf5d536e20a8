/** Where a moment stands, 0 to 1. Stretches in which nothing happened are folded to a narrow band. */

export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** Of a long pause only its begin and its end are of interest, so that it can be folded. */
export function edgesOfSpan({ from, to }: TimeSpan): TimeSpan[] {
  return [
    { from, to: from },
    { from: to, to },
  ];
}

export interface TimeScale {
  readonly at: (moment: number) => number;
  /** The folded stretches. */
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

/** @param busy when something was under way */
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
  return { at, folds };
}
