/**
 * Measures all sides in turn, round by round, each time beginning with another one: whatever else the machine does
 * in these minutes hits all alike, and the ratio of one round is worth more than its times.
 */
import { readClock } from './clock.ts';
import type { KeptRound } from './kept-results.ts';
import { readProcessorTime } from './processor-time.ts';
import { dispatchShape, type Effort, latencyShapes, loadShape, makeText, type Shape } from './shapes.ts';
import type { BySide, CapstanWork, Side } from './side.ts';
import { findCalls, takeTally } from './tally.ts';

export interface LoadRound {
  readonly runsPerSecond: number;
  /** Milliseconds of processor time per run, by part; empty where it cannot be read. */
  readonly processorMs: Readonly<Record<string, number>>;
}

export interface Round {
  /** Milliseconds of every run by shape. */
  readonly latency: Readonly<Record<string, BySide<readonly number[]>>>;
  /** Milliseconds from the request to the first call that the capability gets, of every run. */
  readonly dispatch: BySide<readonly number[]>;
  readonly load: BySide<LoadRound>;
  /** Milliseconds of every event, of those that have a stream. */
  readonly eventDelays: BySide<readonly number[]>;
  /** Of those that keep results. */
  readonly kept: BySide<KeptRound>;
  /** How steps were carried out in the end, and why, of those that choose. */
  readonly dispatched: BySide<string>;
}

export interface Bench {
  readonly sides: readonly Side[];
  readonly effort: Effort;
  /** Where the tally is. */
  readonly endpoint: string;
  readonly processes: ReadonlyMap<string, number>;
}

async function bySide<Value>(
  sides: readonly Side[],
  work: (side: Side) => Promise<Value | undefined> | undefined,
): Promise<BySide<Value>> {
  const values: Partial<Record<Side['name'], Value>> = {};
  for (const side of sides) {
    const value = await work(side);
    if (value !== undefined) values[side.name] = value;
  }
  return values;
}

interface TimedRun {
  readonly ms: number;
  readonly dispatchMs: number;
}

async function timeRuns(
  { endpoint }: Bench,
  side: Side,
  { shape, count }: { readonly shape: Shape; readonly count: number },
): Promise<TimedRun[]> {
  const runs: { text: string; startedAt: number; ms: number }[] = [];
  for (let run = 0; run < count; run++) {
    const text = makeText();
    const startedAt = readClock();
    runs.push({ text, startedAt, ms: await side.time(shape, text) });
  }
  const tally = await takeTally(endpoint);
  return runs.map(({ text, startedAt, ms }) => {
    const { firstAt } = findCalls(tally, text, shape.steps, `${side.name}, ${shape.name}`);
    return { ms, dispatchMs: firstAt - startedAt };
  });
}

/** Keeps `inFlight` runs running until all are done. @returns seconds */
export async function runUnderLoad({ effort, endpoint }: Bench, side: Side): Promise<number> {
  const { inFlight, loadRuns } = effort;
  const text = makeText();
  let left = loadRuns;
  const submit = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await side.run(loadShape, text);
    }
  };
  const startedAt = readClock();
  await Promise.all(Array.from({ length: inFlight }, submit));
  const seconds = (readClock() - startedAt) / 1_000;
  findCalls(await takeTally(endpoint), text, loadRuns * loadShape.steps, `${side.name} under load`);
  return seconds;
}

async function loadRound(bench: Bench, side: Side): Promise<LoadRound> {
  const { loadRuns } = bench.effort;
  const before = readProcessorTime(bench.processes);
  const seconds = await runUnderLoad(bench, side);
  const after = readProcessorTime(bench.processes);
  const spent = side.parts
    .filter((part) => after.has(part))
    .map((part) => [part, ((after.get(part) ?? 0) - (before.get(part) ?? 0)) / loadRuns] as const);
  return { runsPerSecond: loadRuns / seconds, processorMs: Object.fromEntries(spent) };
}

function mapSides<From, To>(values: BySide<From>, map: (value: From) => To): BySide<To> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}

/** One run at a time. */
async function followRuns({ follow }: CapstanWork, count: number): Promise<readonly number[]> {
  const delays: number[] = [];
  for (let run = 0; run < count; run++) delays.push(...(await follow()));
  return delays;
}

/** @param number from 0: another side begins each time */
export async function measureRound(bench: Bench, number: number): Promise<Round> {
  const { sides, effort } = bench;
  const first = number % sides.length;
  const order = [...sides.slice(first), ...sides.slice(0, first)];
  const latency: Record<string, BySide<readonly number[]>> = {};
  let dispatch: Round['dispatch'] = {};
  for (const shape of latencyShapes) {
    const count = effort.runsPerShape(shape);
    const runs = await bySide(order, (side) => timeRuns(bench, side, { shape, count }));
    latency[shape.name] = mapSides(runs, (timed) => timed.map(({ ms }) => ms));
    if (shape === dispatchShape) {
      dispatch = mapSides(runs, (timed) => timed.map(({ dispatchMs }) => dispatchMs));
    }
  }
  return {
    latency,
    dispatch,
    load: await bySide(order, (side) => loadRound(bench, side)),
    eventDelays: await bySide(order, ({ capstan }) =>
      capstan === null ? undefined : followRuns(capstan, effort.followedRuns),
    ),
    kept: await bySide(order, ({ capstan }) => capstan?.measureKept?.()),
    dispatched: await bySide(order, ({ capstan }) => capstan?.tellDispatch()),
  };
}

/** Fills caches, connections and compiled code, which no later run pays for, once it is known what is called. */
export async function warmUp(bench: Bench): Promise<void> {
  for (const { capstan } of bench.sides) await capstan?.learn();
  await takeTally(bench.endpoint);
  for (const side of bench.sides) {
    for (const shape of latencyShapes) await timeRuns(bench, side, { shape, count: 2 });
    await runUnderLoad(bench, side);
  }
}
