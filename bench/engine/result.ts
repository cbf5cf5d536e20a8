/** What the rounds say: medians, ratios, and whether the bars are met. */
import { arch, cpus, platform } from 'node:os';
import type { LoadRound, Round } from './measure.ts';
import { latencyShapes } from './shapes.ts';
import type { SideName } from './side.ts';
import { median } from './statistics.ts';

export const bars = { stepTime: 1.8, throughput: 0.6 } as const;

/** `ratio` is Capstan's value by the bare one's: the median of the rounds' own ratios. */
export interface Comparison {
  readonly name: string;
  readonly capstan: number;
  readonly bare: number;
  readonly ratio: number;
  readonly passed: boolean;
}

export interface BenchResult {
  readonly at: string;
  readonly machine: string;
  readonly rounds: number;
  /** Milliseconds per step. */
  readonly step_ms: readonly Comparison[];
  readonly runs_per_second: Comparison;
  /** Milliseconds of processor time per three-step run under load, by side and part. */
  readonly processor_ms: Readonly<Record<SideName, Readonly<Record<string, number>>>>;
  readonly history_events: Readonly<Record<SideName, number>>;
  readonly passed: boolean;
}

type Pair = Readonly<Record<SideName, number>>;

const compare = (name: string, pairs: readonly Pair[], isGood: (ratio: number) => boolean): Comparison => {
  const ratio = median(pairs.map(({ capstan, bare }) => capstan / bare));
  return {
    name,
    capstan: median(pairs.map(({ capstan }) => capstan)),
    bare: median(pairs.map(({ bare }) => bare)),
    ratio,
    passed: isGood(ratio),
  };
};

const processorOf = (rounds: readonly LoadRound[]): Record<string, number> => {
  const parts = Object.keys(rounds[0]?.processorMs ?? {});
  return Object.fromEntries(parts.map((part) => [part, median(rounds.map((r) => r.processorMs[part] ?? 0))]));
};

export const summarize = (
  rounds: readonly Round[],
  historyEvents: BenchResult['history_events'],
): BenchResult => {
  const step_ms = latencyShapes.map(({ name, steps }) => {
    const pairs = rounds.map(({ latency }) => {
      const { capstan = Number.NaN, bare = Number.NaN } = latency[name] ?? {};
      return { capstan: capstan / steps, bare: bare / steps };
    });
    return compare(name, pairs, (ratio) => ratio <= bars.stepTime);
  });
  const rates = rounds.map(({ load: { capstan, bare } }) => ({
    capstan: capstan.runsPerSecond,
    bare: bare.runsPerSecond,
  }));
  const runs_per_second = compare('runs per second', rates, (ratio) => ratio >= bars.throughput);
  const processor = (name: SideName) => processorOf(rounds.map(({ load }) => load[name]));
  return {
    at: new Date().toISOString(),
    machine: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${platform()} ${arch()}, Node ${process.version}`,
    rounds: rounds.length,
    step_ms,
    runs_per_second,
    processor_ms: { capstan: processor('capstan'), bare: processor('bare') },
    history_events: historyEvents,
    passed: [...step_ms, runs_per_second].every(({ passed }) => passed),
  };
};
