/**
 * Measures both sides in turn, round by round, the first one alternating: whatever else the machine does in these
 * minutes hits both alike, and the ratio of one round is worth more than its times.
 */
import { readProcessorTime } from './processor-time.ts';
import { type Effort, latencyShapes, loadShape, type Shape } from './shapes.ts';
import { type Side, type SideName, sideNames } from './side.ts';
import { median } from './statistics.ts';

export type Sides = Readonly<Record<SideName, Side>>;

export interface LoadRound {
  readonly runsPerSecond: number;
  /** Milliseconds of processor time per run, by part. */
  readonly processorMs: Readonly<Record<string, number>>;
}

export interface Round {
  /** Milliseconds of one run by shape: the median of the round. */
  readonly latency: Readonly<Record<string, Readonly<Record<SideName, number>>>>;
  readonly load: Readonly<Record<SideName, LoadRound>>;
}

const bySide = async <Value>(
  order: readonly SideName[],
  work: (name: SideName) => Promise<Value>,
): Promise<Record<SideName, Value>> => {
  const values: Partial<Record<SideName, Value>> = {};
  for (const name of order) values[name] = await work(name);
  return values as Record<SideName, Value>;
};

const timeRuns = async (side: Side, shape: Shape, count: number): Promise<number> => {
  const times: number[] = [];
  for (let run = 0; run < count; run++) times.push(await side.time(shape));
  return median(times);
};

/** Keeps `inFlight` runs under way until all are done. */
const runUnderLoad = async (side: Side, { inFlight, loadRuns }: Effort): Promise<void> => {
  let left = loadRuns;
  const submit = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await side.run(loadShape);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, submit));
};

const loadRound = async (
  side: Side,
  effort: Effort,
  processes: ReadonlyMap<string, number>,
): Promise<LoadRound> => {
  const before = readProcessorTime(processes);
  const startedAt = performance.now();
  await runUnderLoad(side, effort);
  const seconds = (performance.now() - startedAt) / 1_000;
  const spent = [...readProcessorTime(processes)].map(
    ([part, ms]) => [part, (ms - (before.get(part) ?? 0)) / effort.loadRuns] as const,
  );
  return { runsPerSecond: effort.loadRuns / seconds, processorMs: Object.fromEntries(spent) };
};

export const measureRound = async (
  sides: Sides,
  effort: Effort,
  { number, processes }: { readonly number: number; readonly processes: ReadonlyMap<string, number> },
): Promise<Round> => {
  const order = number % 2 === 0 ? sideNames : sideNames.toReversed();
  const latency: Record<string, Record<SideName, number>> = {};
  for (const shape of latencyShapes) {
    latency[shape.name] = await bySide(order, (name) =>
      timeRuns(sides[name], shape, effort.runsPerShape(shape)),
    );
  }
  return { latency, load: await bySide(order, (name) => loadRound(sides[name], effort, processes)) };
};

/** Fills caches, connections and compiled code, which no later run pays for. */
export const warmUp = async (sides: Sides, effort: Effort): Promise<void> => {
  for (const name of sideNames) {
    for (const shape of latencyShapes) await timeRuns(sides[name], shape, 2);
    await runUnderLoad(sides[name], effort);
  }
};
