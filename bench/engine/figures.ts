/** The figures of a side in a round, and how they compare with another side in the same round. */
import type { Round } from './measure.ts';
import { latencyShapes } from './shapes.ts';
import { type BySide, counterparts, type SideName } from './side.ts';
import { median } from './statistics.ts';

type Read = (round: Round, side: SideName) => number | undefined;

function medianOf(values: readonly number[] | undefined): number | undefined {
  return values === undefined || values.length === 0 ? undefined : median(values);
}

function processorMs({ load }: Round, side: SideName): number | undefined {
  const times = Object.values(load[side]?.processorMs ?? {});
  return times.length === 0 ? undefined : times.reduce((sum, ms) => sum + ms, 0);
}

const figures: ReadonlyMap<string, Read> = new Map([
  ...latencyShapes.map(({ name }): [string, Read] => [
    name,
    ({ latency }, side) => medianOf(latency[name]?.[side]),
  ]),
  ['runs per second', ({ load }, side) => load[side]?.runsPerSecond],
  ['processor ms/run', processorMs],
  ['first dispatch', ({ dispatch }, side) => medianOf(dispatch[side])],
  ['event to stream', ({ eventDelays }, side) => medianOf(eventDelays[side])],
  ['kept step', ({ kept }, side) => medianOf(kept[side]?.stepMs)],
]);

/** @throws Error for a name that there is not */
export function readFigure(name: string): Read {
  const read = figures.get(name);
  if (read === undefined) throw new Error(`no figure is called ${name}`);
  return read;
}

/** @returns the median of the rounds' own ratios; undefined if one of the two took no part */
export function ratioOf(
  rounds: readonly Round[],
  read: Read,
  [own, other]: readonly [SideName, SideName],
): number | undefined {
  const ratios = rounds.flatMap((round) => {
    const [mine, theirs] = [read(round, own), read(round, other)];
    return mine === undefined || theirs === undefined ? [] : [mine / theirs];
  });
  return medianOf(ratios);
}

export type Ratios = BySide<Readonly<Record<string, number>>>;

/** @returns by the first of each pair, for every figure that both have */
function compare(rounds: readonly Round[], pairs: readonly (readonly [SideName, SideName])[]): Ratios {
  const compared = pairs.map((pair) => {
    const ratios = [...figures].flatMap(([name, read]) => {
      const ratio = ratioOf(rounds, read, pair);
      return ratio === undefined ? [] : [[name, ratio] as const];
    });
    return [pair[0], Object.fromEntries(ratios)] as const;
  });
  return Object.fromEntries(compared.filter(([, ratios]) => Object.keys(ratios).length > 0));
}

/** What has changed from another checkout to this one. */
export function compareCheckouts(rounds: readonly Round[]): Ratios {
  return compare(rounds, counterparts);
}

export function compareWith(rounds: readonly Round[], other: SideName): Ratios {
  return compare(rounds, [
    ['capstan', other],
    ['queued', other],
  ]);
}
