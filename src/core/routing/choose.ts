/**
 * Picks the order in which instances are asked to take a call. Pure: the same snapshot, request and seed give
 * the same order, so that a stored decision can be replayed. One pass over the candidates and one sort.
 */
import type { Priority } from '../../contracts/primitives.ts';
import { expectedCost, expectedSuccess, expectedWait, priorDuration } from './estimate.ts';
import { excludeInstance } from './filter.ts';
import { tierOf } from './tier.ts';
import type { Choice, InstanceSnapshot, RankedInstance, RouteRequest } from './types.ts';

/** What a second of waiting is worth, USD. */
const waitingUsdPerSecond: Record<Priority, number> = { interactive: 0.01, standard: 0.001, batch: 0 };

/** Values within 1 % of each other are ties. Bands of the logarithm keep the order transitive. */
const bandOf = (value: number): number =>
  value <= 1e-12 ? Number.NEGATIVE_INFINITY : Math.floor(Math.log(value) / Math.log(1.01));

/** A number that depends on nothing but the seed and the instance. */
const tieBreak = (seed: number, id: string): number => {
  let hash = seed | 0;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
};

const rank = (
  instance: InstanceSnapshot,
  request: RouteRequest,
  prior: number,
  costUsd: number,
): RankedInstance => {
  const waitMs = expectedWait(instance, prior);
  const price = costUsd + (waitingUsdPerSecond[request.priority] * waitMs) / 1_000;
  return {
    instance,
    tier: tierOf(instance),
    costUsd,
    waitMs,
    score: price / Math.max(expectedSuccess(instance), 0.05),
    isFull: instance.held >= instance.max_concurrency,
  };
};

interface Placed {
  readonly entry: RankedInstance;
  readonly scoreBand: number;
  readonly waitBand: number;
  readonly tie: number;
}

/** For equal scores the shorter wait: whom waiting costs nothing should still not queue beside an idle instance. */
const byRank = (a: Placed, b: Placed): number => {
  if (a.entry.tier !== b.entry.tier) return a.entry.tier - b.entry.tier;
  if (a.scoreBand !== b.scoreBand) return a.scoreBand < b.scoreBand ? -1 : 1;
  if (a.waitBand !== b.waitBand) return a.waitBand < b.waitBand ? -1 : 1;
  if (a.tie !== b.tie) return a.tie - b.tie;
  return a.entry.instance.instance_id < b.entry.instance.instance_id ? -1 : 1;
};

/**
 * @param instances every known instance of the capability
 * @param seed any 32-bit integer; decides ties
 * @returns possible instances, best first, and the others with the reason
 */
export const choose = (
  instances: readonly InstanceSnapshot[],
  request: RouteRequest,
  seed: number,
): Choice => {
  const prior = priorDuration(instances);
  const ranked: Placed[] = [];
  const excluded: Choice['excluded'][number][] = [];
  for (const instance of instances) {
    const costUsd = expectedCost(instance, prior);
    const verdict = excludeInstance(instance, request, costUsd);
    if (verdict !== null) {
      excluded.push({ instance, verdict });
      continue;
    }
    const entry = rank(instance, request, prior, costUsd);
    ranked.push({
      entry,
      scoreBand: bandOf(entry.score),
      waitBand: bandOf(entry.waitMs),
      tie: tieBreak(seed, instance.instance_id),
    });
  }
  ranked.sort(byRank);
  return { ranked: ranked.map(({ entry }) => entry), excluded };
};
