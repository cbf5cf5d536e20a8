/** The result of the rounds: medians, ratios, and whether the bars are met. */
import { arch, cpus, platform } from 'node:os';
import { type Check, checkBars } from './bars.ts';
import { compareCheckouts, compareWith, type Ratios, ratioOf, readFigure } from './figures.ts';
import { equalItemCount, type KeptRound } from './kept-results.ts';
import type { LoadRound, Round } from './measure.ts';
import { latencyShapes } from './shapes.ts';
import { type BySide, type SideName, sideNames } from './side.ts';
import { median, percentile99 } from './statistics.ts';

/** `ratio` is the side's value by the bare one's: the median of the rounds' own ratios. */
export interface Figure {
  readonly value: number;
  readonly ratio: number;
}

export interface Comparison {
  readonly name: string;
  readonly sides: BySide<Figure>;
}

export interface Delays {
  readonly count: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}

/** Of steps whose results are kept; `usd` and `calls` of all runs in all rounds. */
export interface Kept {
  readonly step_ms: number;
  readonly usd: number;
  readonly calls: number;
  /** A list of so many, each time with another text. */
  readonly equal_items: { readonly count: number; readonly ms: number; readonly most_calls: number };
}

export interface BenchResult {
  readonly at: string;
  readonly machine: string;
  readonly rounds: number;
  /** Milliseconds per step. */
  readonly step_ms: readonly Comparison[];
  readonly runs_per_second: Comparison;
  /** Milliseconds of processor time per three-step run under load, by side and part. */
  readonly processor_ms: BySide<Readonly<Record<string, number>>>;
  /** From the request to the first call that the capability gets. */
  readonly first_dispatch: BySide<Delays>;
  /** From an event's row to its arrival on an open stream. */
  readonly event_delay: BySide<Delays>;
  readonly history_events: BySide<number | null>;
  /** Empty where the API keeps no results. */
  readonly kept: BySide<Kept>;
  /** This checkout's value by that of the floor: the median of the rounds' own ratios. Empty without it. */
  readonly by_floor: Ratios;
  /** This checkout's value by DBOS's: the median of the rounds' own ratios. Empty without DBOS. */
  readonly by_dbos: Ratios;
  /** This checkout's value by the other one's: the median of the rounds' own ratios. Empty without another one. */
  readonly by_other_checkout: Ratios;
  readonly bars: readonly Check[];
  readonly passed: boolean;
  /** Everything that was measured. */
  readonly by_round: readonly Round[];
}

function forSides<Value>(find: (name: SideName) => Value | undefined): BySide<Value> {
  return Object.fromEntries(
    sideNames.flatMap((name) => {
      const value = find(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** @param name of the figure, which is divided by `parts` */
function compare(name: string, rounds: readonly Round[], parts = 1): Comparison {
  const read = readFigure(name);
  return {
    name,
    sides: forSides((side) => {
      const values = rounds.flatMap((round) => read(round, side) ?? []);
      if (values.length === 0) return undefined;
      const ratio = ratioOf(rounds, read, [side, 'bare']) ?? Number.NaN;
      return { value: median(values) / parts, ratio };
    }),
  };
}

function toDelays(values: readonly number[]): Delays | undefined {
  return values.length === 0
    ? undefined
    : { count: values.length, p50_ms: median(values), p99_ms: percentile99(values) };
}

function processorOf(rounds: readonly LoadRound[]): Record<string, number> | undefined {
  const parts = Object.keys(rounds[0]?.processorMs ?? {});
  if (parts.length === 0) return undefined;
  return Object.fromEntries(parts.map((part) => [part, median(rounds.map((r) => r.processorMs[part] ?? 0))]));
}

function toKept(rounds: readonly KeptRound[]): Kept | undefined {
  if (rounds.length === 0) return undefined;
  const lists = rounds.map(({ equalItems }) => equalItems);
  return {
    step_ms: median(rounds.flatMap(({ stepMs }) => stepMs)),
    usd: rounds.reduce((sum, { usd }) => sum + usd, 0),
    calls: rounds.reduce((sum, { calls }) => sum + calls, 0),
    equal_items: {
      count: equalItemCount,
      ms: median(lists.map(({ ms }) => ms)),
      most_calls: Math.max(...lists.map(({ calls }) => calls)),
    },
  };
}

export function describeMachine(): string {
  return `${cpus().length} × ${cpus()[0]?.model.trim()}, ${platform()} ${arch()}, Node ${process.version}`;
}

export function summarize(
  rounds: readonly Round[],
  historyEvents: BenchResult['history_events'],
): BenchResult {
  const bars = checkBars(rounds);
  return {
    at: new Date().toISOString(),
    machine: describeMachine(),
    rounds: rounds.length,
    step_ms: latencyShapes.map(({ name, steps }) => compare(name, rounds, steps)),
    runs_per_second: compare('runs per second', rounds),
    processor_ms: forSides((side) => processorOf(rounds.flatMap(({ load }) => load[side] ?? []))),
    first_dispatch: forSides((side) => toDelays(rounds.flatMap(({ dispatch }) => dispatch[side] ?? []))),
    event_delay: forSides((side) => toDelays(rounds.flatMap(({ eventDelays }) => eventDelays[side] ?? []))),
    history_events: historyEvents,
    kept: forSides((side) => toKept(rounds.flatMap(({ kept }) => kept[side] ?? []))),
    by_floor: compareWith(rounds, 'floor'),
    by_dbos: compareWith(rounds, 'dbos'),
    by_other_checkout: compareCheckouts(rounds),
    bars,
    passed: bars.every(({ passed }) => passed),
    by_round: rounds,
  };
}
