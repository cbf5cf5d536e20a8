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
  /** The start of the run, from which times on the axis count. */
  readonly origin: number;
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
  return { at, origin: first, first, last, folds };
}

const niceMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000].concat(
  [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440, 2_880, 7_200, 14_400, 43_200].map(
    (minutes) => minutes * 60_000,
  ),
);
const usualTicks = 6;
const leastGap = 0.09;

/** Moments for an axis: round ones since the start, and the ends of folds; never too close to one another. */
export function ticksOf({ at, origin, first, last, folds }: TimeScale, most = usualTicks): number[] {
  // A part may begin or end within a fold.
  const starts = [first, ...folds.map(({ to }) => to)];
  const stretches = starts
    .map((from, index) => ({ from, to: Math.min(last, folds[index]?.from ?? last) }))
    .filter(({ from, to }) => from <= to);
  const shownMs = stretches.reduce((sum, { from, to }) => sum + to - from, 0);
  const step = niceMs.find((ms) => shownMs / ms <= most) ?? shownMs;
  const ticks: number[] = [];
  const add = (moment: number): void => {
    const before = ticks.at(-1);
    if (before === undefined || at(moment) - at(before) >= leastGap) ticks.push(moment);
  };
  for (const { from, to } of stretches) {
    add(from);
    for (let tick = origin + (Math.floor((from - origin) / step) + 1) * step; tick <= to; tick += step)
      add(tick);
  }
  return ticks;
}

export interface TimeLabel {
  readonly moment: number;
  readonly text: string;
  /** 0 to 1 */
  readonly place: number;
  /** It is before its tick, because there is no room behind it. */
  readonly isBefore: boolean;
}

const charPx = 7;
const paddingPx = 10;
const betweenLabelsPx = 100;

/** The labels of an axis that is so many pixels wide: none covers another. */
export function labelsOf(
  scale: TimeScale,
  widthPx: number,
  textOf: (moment: number) => string,
): readonly TimeLabel[] {
  const most = Math.max(1, Math.min(usualTicks, Math.floor(widthPx / betweenLabelsPx)));
  const labels: TimeLabel[] = [];
  let freeFrom = 0;
  for (const moment of ticksOf(scale, most)) {
    const place = scale.at(moment);
    const text = textOf(moment);
    const px = text.length * charPx + paddingPx;
    const x = place * widthPx;
    const isBefore = x + px > widthPx;
    const from = isBefore ? x - px : x;
    if (from < freeFrom) continue;
    labels.push({ moment, text, place, isBefore });
    freeFrom = from + px;
  }
  return labels;
}

/** The moment at a place, 0 to 1: the inverse of `at`. */
export function momentAt(
  { at, first, last }: Pick<TimeScale, 'at' | 'first' | 'last'>,
  place: number,
): number {
  let [low, high] = [first, last];
  while (high - low > 0.5) {
    const middle = (low + high) / 2;
    if (at(middle) < place) low = middle;
    else high = middle;
  }
  return Math.round(high);
}

/** A part of a scale as the whole; what is outside has places below 0 and above 1. Null: all of it. */
export function zoomTo(scale: TimeScale, part: TimeSpan | null): TimeScale {
  if (part === null) return scale;
  const from = Math.max(part.from, scale.first);
  const to = Math.min(part.to, scale.last);
  const left = scale.at(from);
  const width = scale.at(to) - left;
  if (width <= 0) return scale;
  const folds = scale.folds.filter((fold) => fold.to > from && fold.from < to);
  return { ...scale, at: (moment) => (scale.at(moment) - left) / width, first: from, last: to, folds };
}

/** Milliseconds that a zoom shows at least. */
const leastMs = 10;

/**
 * Zooms in (a factor above 1) or out, and keeps the moment under a place where it is.
 * @param around 0 to 1, in the part that is shown @returns null: all of it
 */
export function zoomBy(
  scale: TimeScale,
  part: TimeSpan | null,
  { factor, around = 0.5 }: { readonly factor: number; readonly around?: number },
): TimeSpan | null {
  const left = part === null ? 0 : scale.at(part.from);
  const width = (part === null ? 1 : scale.at(part.to)) - left;
  const next = width / factor;
  if (next >= 1) return null;
  const from = Math.min(1 - next, Math.max(0, left + (width - next) * around));
  const zoomed = { from: momentAt(scale, from), to: momentAt(scale, from + next) };
  return zoomed.to - zoomed.from < leastMs ? part : zoomed;
}

/** The part between two places of what is shown, in any order; null when it is too short to be meant. */
export function partBetween(shown: TimeScale, one: number, other: number): TimeSpan | null {
  const [from, to] = [Math.min(one, other), Math.max(one, other)].map((place) =>
    momentAt(shown, Math.min(1, Math.max(0, place))),
  ) as [number, number];
  return Math.abs(one - other) < 0.01 || to - from < leastMs ? null : { from, to };
}
