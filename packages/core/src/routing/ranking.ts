/**
 * The order of the candidates, and the winner among them. R2: tiers come before scores, with the specification's
 * preferred instance first and doubtful ones last. R6: before tiers comes whether the instance has failed this call.
 */
import type { InstanceSnapshot, RankedInstance } from './types.ts';

/**
 * R1 and R3. Values within 1 % of the least are equal. Among equals the seed decides, by a number that depends only on
 * the seed and the instance: leaving out another instance does not change the winner.
 */
export function isTied(value: number, least: number): boolean {
  return value <= least * 1.01;
}

/** Ids end in their random part, so the end is enough. */
const hashedLength = 8;

/** 32 bits. */
export function tieHash(seed: number, id: string): number {
  let hash = seed ^ 0x811c9dc5;
  for (let at = Math.max(0, id.length - hashedLength); at < id.length; at++) {
    hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

// Keeps the first 20 of many candidates and the winner of the tie at their head, in one pass and without a sort. The
// first 20 are kept by insertion, together with all that were within 1 % of the least score when offered.

export const shownCandidates = 20;

export interface Ranking {
  /** At most 20, by place, score, wait and id. */
  readonly first: RankedInstance[];
  /** All candidates tied with the first, and some that were offered before it. */
  near: RankedInstance[];
}

function isTiedWith(head: RankedInstance, place: number, score: number): boolean {
  return place === head.place && isTied(score, head.score);
}

/** Neither among the first nor tied, so not worth an object. */
export function isBehind({ first }: Ranking, place: number, score: number): boolean {
  if (first.length < shownCandidates) return false;
  const last = first[shownCandidates - 1] as RankedInstance;
  const isAfter = place > last.place || (place === last.place && score > last.score);
  return isAfter && !isTiedWith(first[0] as RankedInstance, place, score);
}

function isBefore(a: RankedInstance, b: RankedInstance): boolean {
  if (a.place !== b.place) return a.place < b.place;
  if (a.score !== b.score) return a.score < b.score;
  if (a.countedMs !== b.countedMs) return a.countedMs < b.countedMs;
  return a.instance.instance_id < b.instance.instance_id;
}

function positionOf(first: readonly RankedInstance[], candidate: RankedInstance): number {
  let low = 0;
  let high = first.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(candidate, first[middle] as RankedInstance)) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function offer(ranking: Ranking, candidate: RankedInstance): void {
  const { first } = ranking;
  const at = positionOf(first, candidate);
  if (at === 0 && first.length > 0) {
    const head = first[0] as RankedInstance;
    if (!isTiedWith(candidate, head.place, head.score)) ranking.near = [];
  }
  if (at < shownCandidates) {
    if (first.length < shownCandidates) first.push(candidate);
    for (let to = first.length - 1; to > at; to--) first[to] = first[to - 1] as RankedInstance;
    first[at] = candidate;
  }
  if (isTiedWith(first[0] as RankedInstance, candidate.place, candidate.score)) ranking.near.push(candidate);
}

function idOf({ instance }: RankedInstance): string {
  return instance.instance_id;
}

/** The one with the least wait, then the least id. */
function findSoonest(tied: readonly RankedInstance[]): RankedInstance | null {
  let soonest: RankedInstance | null = null;
  for (const one of tied) {
    const isSooner =
      soonest === null ||
      one.countedMs < soonest.countedMs ||
      (one.countedMs === soonest.countedMs && idOf(one) < idOf(soonest));
    if (isSooner) soonest = one;
  }
  return soonest;
}

/** R7 */
function preferSpoken(equal: readonly RankedInstance[]): readonly RankedInstance[] {
  const spoken = equal.filter(({ isTranslated }) => !isTranslated);
  return spoken.length > 0 ? spoken : equal;
}

/** The result of a tie. These two and the first by score settle it in the same way again. */
export interface Tie {
  readonly winner: RankedInstance;
  readonly soonest: RankedInstance;
}

/** R8. The lower, the better: of a call with a key, among instances that are equal otherwise. */
function lossOf({ residency, isFull }: RankedInstance): number {
  if (residency === undefined) return 0;
  if (isFull) return Number.POSITIVE_INFINITY;
  if (residency.isResident) return residency.isListed ? 0.5 : 0;
  return residency.usedAtMs === null ? 1 : 2 + residency.usedAtMs;
}

/**
 * Keeps those within 1 % of the least score that need no translation, if there are any, then those within 1 % of the
 * least wait, then those of which the least is lost (R8), and lets the seed decide. Null without candidates.
 */
export function settleTie({ first: [head], near }: Ranking, seed: number): Tie | null {
  if (head === undefined) return null;
  const equal = near.filter(({ place, score }) => isTiedWith(head, place, score));
  const tied = equal.some(({ isTranslated }) => isTranslated) ? preferSpoken(equal) : equal;
  const soonest = findSoonest(tied) ?? head;
  let winner = soonest;
  let loss = lossOf(soonest);
  let least = tieHash(seed, idOf(soonest));
  for (const one of tied) {
    if (!isTied(one.countedMs, soonest.countedMs)) continue;
    const own = lossOf(one);
    if (own > loss) continue;
    const hash = tieHash(seed, idOf(one));
    if (own < loss || hash < least || (hash === least && idOf(one) < idOf(winner))) {
      winner = one;
      loss = own;
      least = hash;
    }
  }
  return { winner, soonest };
}

const loopback = /^https?:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(\/|$)/;

export function isLocal({ tags, endpoint }: Pick<InstanceSnapshot, 'tags' | 'endpoint'>): boolean {
  return tags.includes('local') || loopback.test(endpoint);
}

/** The tier of an instance with a half-open breaker; an instance with an open one is not a candidate. */
export const halfOpenTier = 3;

const tiers = halfOpenTier + 1;

/**
 * R6: the tier, placed behind all tiers for an instance that has failed this call, by its number of failures.
 * @param failures counted ones; undefined = it has not failed this call
 */
export function placeOf(tier: number, failures: number | undefined): number {
  return failures === undefined ? tier : tier + tiers * (1 + failures);
}

export function hasFailedBefore({ tier, place }: Pick<RankedInstance, 'tier' | 'place'>): boolean {
  return place !== tier;
}

/**
 * 0 = free, local, up and idle; 1 = up; 2 = suspect or warming; 3 = half-open.
 * @param depth its current calls and reported work
 * @param trials instances that may be tried although their breaker is half-open
 */
export function tierOf(
  instance: InstanceSnapshot,
  depth: number,
  trials: ReadonlySet<string> | undefined,
): number {
  if (instance.breaker_until_ms !== null && trials?.has(instance.instance_id) !== true) return halfOpenTier;
  if (instance.state === 'suspect' || instance.state === 'warming') return 2;
  const isIdle = depth === 0 && instance.host_room !== 0;
  return instance.rate_usd === 0 && isIdle && instance.is_local ? 0 : 1;
}
