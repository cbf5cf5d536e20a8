/** The figures of the page and its picture: medians from two benches, kept beside them. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ratioOf, readFigure } from '../../../bench/engine/figures.ts';
import type { BenchResult } from '../../../bench/engine/result.ts';
import { latencyShapes, loadShape } from '../../../bench/engine/shapes.ts';
import type { Mark } from '../../../bench/path/marks.ts';
import type { PathSideName } from '../../../bench/path/path-side.ts';
import type { PathResult } from '../../../bench/path/result.ts';

export const figuresFile = 'bench/engine/figures.json';

/** Those that are shown, in the order of their rows. */
export const shownSides = ['capstan', 'queued', 'bare', 'restate', 'dbos'] as const;
export type ShownSide = (typeof shownSides)[number];

export const sideTitles: Readonly<Record<ShownSide, string>> = {
  capstan: 'Capstan, nothing set',
  queued: 'Capstan, queued',
  bare: 'Temporal alone',
  restate: 'Restate',
  dbos: 'DBOS',
};

/** Of the sides whose way to the first call was followed. */
export const pathOf: Readonly<Partial<Record<ShownSide, PathSideName>>> = {
  capstan: 'unset',
  queued: 'queued',
  bare: 'bare',
};

export interface SideFigures {
  /** Milliseconds per step, by shape. */
  readonly step_ms: Readonly<Record<string, number>>;
  readonly runs_per_second: number;
  /** Milliseconds per step under load, by process. */
  readonly processor_ms: Readonly<Record<string, number>>;
  /** Milliseconds from the request to the first call. */
  readonly first_call_ms: number;
  /** Of a run of three steps; null without Temporal. */
  readonly history_events: number | null;
  /** Each figure by that of Temporal alone: the median of the rounds' own ratios. */
  readonly by_bare: Readonly<Record<string, number>>;
}

export interface EngineFigures {
  readonly at: string;
  readonly machine: string;
  readonly rounds: number;
  readonly sides: Readonly<Record<ShownSide, SideFigures>>;
  readonly kept_step_ms: number;
  readonly equal_items: { readonly count: number; readonly ms: number; readonly calls: number };
}

export interface PathShown {
  readonly at: string;
  readonly runs: number;
  readonly sides: Readonly<Record<PathSideName, readonly Mark[]>>;
}

export interface Figures {
  readonly engine: EngineFigures;
  readonly path: PathShown;
}

/** By the names that the bench of the engine has for them. */
const comparedFigures = [
  ...latencyShapes.map(({ name }) => name),
  'runs per second',
  'processor ms/run',
  'first dispatch',
] as const;

function round(value: number): number {
  return Number(value.toFixed(2));
}

function mapValues<From, To>(
  values: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}

/** @throws Error where the side took no part */
function toSide(result: BenchResult, side: ShownSide): SideFigures {
  const dispatch = result.first_dispatch[side];
  const rate = result.runs_per_second.sides[side];
  if (dispatch === undefined || rate === undefined) throw new Error(`${side} took no part`);
  const steps = result.step_ms.map(({ name, sides }) => [name, round(sides[side]?.value ?? 0)] as const);
  return {
    step_ms: Object.fromEntries(steps),
    runs_per_second: round(rate.value),
    processor_ms: mapValues(result.processor_ms[side] ?? {}, (ms) => round(ms / loadShape.steps)),
    first_call_ms: round(dispatch.p50_ms),
    history_events: result.history_events[side] ?? null,
    by_bare: Object.fromEntries(
      comparedFigures.map((name) => [
        name,
        round(ratioOf(result.by_round, readFigure(name), [side, 'bare']) ?? Number.NaN),
      ]),
    ),
  };
}

/** @throws Error where a side took no part */
export function toEngineFigures(result: BenchResult): EngineFigures {
  const { at, machine, rounds, kept } = result;
  if (kept.capstan === undefined) throw new Error('no results were kept');
  const { step_ms, equal_items } = kept.capstan;
  const sides = shownSides.map((side) => [side, toSide(result, side)] as const);
  return {
    at,
    machine,
    rounds,
    sides: Object.fromEntries(sides) as EngineFigures['sides'],
    kept_step_ms: round(step_ms),
    equal_items: { count: equal_items.count, ms: round(equal_items.ms), calls: equal_items.most_calls },
  };
}

export function toPathShown({ at, runs, sides }: PathResult): PathShown {
  const toMarks = (marks: readonly Mark[]): Mark[] =>
    marks.map(({ name, at_ms, stage_ms }) => ({ name, at_ms: round(at_ms), stage_ms: round(stage_ms) }));
  return {
    at,
    runs,
    sides: {
      unset: toMarks(sides.unset.marks),
      queued: toMarks(sides.queued.marks),
      bare: toMarks(sides.bare.marks),
    },
  };
}

export function readFigures(): Figures {
  const file = fileURLToPath(new URL(`../../../${figuresFile}`, import.meta.url));
  return JSON.parse(readFileSync(file, 'utf8')) as Figures;
}
