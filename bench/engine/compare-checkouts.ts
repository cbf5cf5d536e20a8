/** What has changed from another checkout to this one, for every figure that both have in the same rounds. */
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

const figures: readonly (readonly [name: string, read: Read])[] = [
  ...latencyShapes.map(
    ({ name }): readonly [string, Read] => [name, ({ latency }, side) => latency[name]?.[side]] as const,
  ),
  ['runs per second', ({ load }, side) => load[side]?.runsPerSecond],
  ['processor ms/run', processorMs],
  ['first dispatch', ({ dispatch }, side) => medianOf(dispatch[side])],
  ['event to stream', ({ eventDelays }, side) => medianOf(eventDelays[side])],
];

function ratioOf(rounds: readonly Round[], read: Read, [own, other]: readonly [SideName, SideName]) {
  const ratios = rounds.flatMap((round) => {
    const [mine, theirs] = [read(round, own), read(round, other)];
    return mine === undefined || theirs === undefined ? [] : [mine / theirs];
  });
  return medianOf(ratios);
}

/** @returns by this checkout's sides, for those whose counterpart took part */
export function compareCheckouts(rounds: readonly Round[]): BySide<Readonly<Record<string, number>>> {
  const compared = counterparts.map((pair) => {
    const ratios = figures.flatMap(([name, read]) => {
      const ratio = ratioOf(rounds, read, pair);
      return ratio === undefined ? [] : [[name, ratio] as const];
    });
    return [pair[0], Object.fromEntries(ratios)] as const;
  });
  return Object.fromEntries(compared.filter(([, ratios]) => Object.keys(ratios).length > 0));
}
