/** What a run of three steps passes between its request and its end. */
import { median } from '../engine/statistics.ts';

/** They are in the order in which they are passed. Not every side passes all: a mark follows on the one that it has. */
export const markNames = [
  'run stored',
  'workflow started',
  'run with the worker',
  'activity with the worker',
  'call claimed',
  'first call',
  'step 1 ended',
  'step 2 begun',
  'step 2 ended',
  'step 3 begun',
  'step 3 ended',
  'run ended',
] as const;
export type MarkName = (typeof markNames)[number];

/** Parallel work, which delays nothing. */
const asideNames = ['answered', 'start noted'] as const;
type AsideName = (typeof asideNames)[number];

/** Milliseconds since the request. */
export type Path = Readonly<Partial<Record<MarkName | AsideName, number>>>;

export interface Mark<Name = MarkName> {
  readonly name: Name;
  /** Median of the milliseconds since the request. */
  readonly at_ms: number;
  /** Median of the milliseconds since the mark before it; the medians of a path need not add up. */
  readonly stage_ms: number;
}

/** The sums of many runs of one side. */
export interface PathFigures {
  readonly marks: readonly Mark[];
  readonly aside: readonly Omit<Mark<AsideName>, 'stage_ms'>[];
}

interface Passed {
  readonly at: number;
  readonly stage: number;
}

function toPassed(path: Path): ReadonlyMap<MarkName, Passed> {
  const passed = new Map<MarkName, Passed>();
  let before = 0;
  for (const name of markNames) {
    const at = path[name];
    if (at === undefined) continue;
    passed.set(name, { at, stage: at - before });
    before = at;
  }
  return passed;
}

function present<Value>(value: Value | undefined): readonly Value[] {
  return value === undefined ? [] : [value];
}

export function summarizePaths(paths: readonly Path[]): PathFigures {
  const all = paths.map(toPassed);
  return {
    marks: markNames.flatMap((name) => {
      const passed = all.flatMap((marks) => present(marks.get(name)));
      if (passed.length === 0) return [];
      const at_ms = median(passed.map(({ at }) => at));
      return [{ name, at_ms, stage_ms: median(passed.map(({ stage }) => stage)) }];
    }),
    aside: asideNames.flatMap((name) => {
      const times = paths.flatMap((path) => present(path[name]));
      return times.length === 0 ? [] : [{ name, at_ms: median(times) }];
    }),
  };
}
