/** What the rounds say: medians, ratios, and whether the bars are met. */
import { arch, cpus, platform } from 'node:os';
import { type Bar, findLoadBar, findStepBar, isMet } from './bars.ts';
import { compareCheckouts } from './compare-checkouts.ts';
import type { LoadRound, Round } from './measure.ts';
import { latencyShapes } from './shapes.ts';
import { type BySide, type SideName, sideNames } from './side.ts';
import { median, percentile99 } from './statistics.ts';

/** `ratio` is the side's value by the bare one's: the median of the rounds' own ratios. */
export interface Figure {
  readonly value: number;
  readonly ratio: number;
  readonly bar: Bar | null;
  readonly passed: boolean | null;
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
  /** This checkout's value by the other one's: the median of the rounds' own ratios. Empty without another one. */
  readonly by_other_checkout: BySide<Readonly<Record<string, number>>>;
  readonly passed: boolean;
}

function forSides<Value>(find: (name: SideName) => Value | undefined): BySide<Value> {
  return Object.fromEntries(
    sideNames.flatMap((name) => {
      const value = find(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function compare(
  name: string,
  rounds: readonly BySide<number>[],
  findBar: (side: SideName) => Bar | null,
): Comparison {
  return {
    name,
    sides: forSides((side) => {
      const values = rounds.flatMap((round) => round[side] ?? []);
      if (values.length === 0) return undefined;
      const ratio = median(rounds.map((round) => (round[side] ?? Number.NaN) / (round.bare ?? Number.NaN)));
      const bar = findBar(side);
      return { value: median(values), ratio, bar, passed: bar === null ? null : isMet(bar, ratio) };
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

function compareSteps(rounds: readonly Round[]): Comparison[] {
  return latencyShapes.map((shape) => {
    const perStep = rounds.map(({ latency }) =>
      forSides((side) => {
        const ms = latency[shape.name]?.[side];
        return ms === undefined ? undefined : ms / shape.steps;
      }),
    );
    return compare(shape.name, perStep, (side) => findStepBar(side, shape));
  });
}

function describeMachine(): string {
  return `${cpus().length} × ${cpus()[0]?.model.trim()}, ${platform()} ${arch()}, Node ${process.version}`;
}

export function summarize(
  rounds: readonly Round[],
  historyEvents: BenchResult['history_events'],
): BenchResult {
  const step_ms = compareSteps(rounds);
  const rates = rounds.map(({ load }) => forSides((side) => load[side]?.runsPerSecond));
  const runs_per_second = compare('runs per second', rates, findLoadBar);
  return {
    at: new Date().toISOString(),
    machine: describeMachine(),
    rounds: rounds.length,
    step_ms,
    runs_per_second,
    processor_ms: forSides((side) => processorOf(rounds.flatMap(({ load }) => load[side] ?? []))),
    first_dispatch: forSides((side) => toDelays(rounds.flatMap(({ dispatch }) => dispatch[side] ?? []))),
    event_delay: forSides((side) => toDelays(rounds.flatMap(({ eventDelays }) => eventDelays[side] ?? []))),
    history_events: historyEvents,
    by_other_checkout: compareCheckouts(rounds),
    passed: [...step_ms, runs_per_second].every(({ sides }) =>
      Object.values(sides).every(({ passed }) => passed !== false),
    ),
  };
}
