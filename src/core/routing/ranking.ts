/**
 * The first 20 of many candidates and the winner of the tie at their head, in one pass and without a sort: the
 * first 20 are kept by insertion, and beside them whatever was within 1 % of the least score when it came.
 */
import { isTied, tieHash } from './tie.ts';
import type { RankedInstance } from './types.ts';

export const shownCandidates = 20;

export interface Ranking {
  /** At most 20, by place, score, wait and id. */
  readonly first: RankedInstance[];
  /** Holds all that are tied with the first, and some that were before it came. */
  near: RankedInstance[];
}

function isTiedWith(head: RankedInstance, place: number, score: number): boolean {
  return place === head.place && isTied(score, head.score);
}

/** Neither among the first nor tied: not worth an object. */
export function isBehind({ first }: Ranking, place: number, score: number): boolean {
  if (first.length < shownCandidates) return false;
  const last = first[shownCandidates - 1] as RankedInstance;
  const isAfter = place > last.place || (place === last.place && score > last.score);
  return isAfter && !isTiedWith(first[0] as RankedInstance, place, score);
}

function isBefore(a: RankedInstance, b: RankedInstance): boolean {
  if (a.place !== b.place) return a.place < b.place;
  if (a.score !== b.score) return a.score < b.score;
  if (a.waitMs !== b.waitMs) return a.waitMs < b.waitMs;
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

/** The one with the least wait; with the least id, if several have it. */
function findSoonest(tied: readonly RankedInstance[]): RankedInstance | null {
  let soonest: RankedInstance | null = null;
  for (const one of tied) {
    const isSooner =
      soonest === null ||
      one.waitMs < soonest.waitMs ||
      (one.waitMs === soonest.waitMs && idOf(one) < idOf(soonest));
    if (isSooner) soonest = one;
  }
  return soonest;
}

/** Who knows both, and the first by score, settles the tie in the same way. */
export interface Tie {
  readonly winner: RankedInstance;
  readonly soonest: RankedInstance;
}

/** Takes those within 1 % of the least score, then of the least wait, and lets the seed decide. Null when nothing was offered. */
export function settleTie({ first: [head], near }: Ranking, seed: number): Tie | null {
  if (head === undefined) return null;
  const tied = near.filter(({ place, score }) => isTiedWith(head, place, score));
  const soonest = findSoonest(tied) ?? head;
  let winner = soonest;
  let least = tieHash(seed, idOf(soonest));
  for (const one of tied) {
    if (!isTied(one.waitMs, soonest.waitMs)) continue;
    const hash = tieHash(seed, idOf(one));
    if (hash < least || (hash === least && idOf(one) < idOf(winner))) {
      winner = one;
      least = hash;
    }
  }
  return { winner, soonest };
}
