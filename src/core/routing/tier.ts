/**
 * R2. Tiers come before scores: the specification's preferred instance first, doubtful ones last. R6. Before tiers comes
 * whether the instance has failed this very call.
 */
import type { InstanceSnapshot, RankedInstance } from './types.ts';

const loopback = /^https?:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(\/|$)/;

export function isLocal({ tags, endpoint }: Pick<InstanceSnapshot, 'tags' | 'endpoint'>): boolean {
  return tags.includes('local') || loopback.test(endpoint);
}

/** The tier of an instance whose breaker is half-open; one whose breaker is open is no candidate. */
export const halfOpenTier = 3;

const tiers = halfOpenTier + 1;

/**
 * R6: tiers as they are, and behind all of them the tiers of those that have failed this call, the more often the later.
 * @param failures counted ones; undefined = it has not failed this call
 */
export function placeOf(tier: number, failures: number | undefined): number {
  return failures === undefined ? tier : tier + tiers * (1 + failures);
}

export function hasFailedBefore({ tier, place }: Pick<RankedInstance, 'tier' | 'place'>): boolean {
  return place !== tier;
}

/**
 * 0 = free, local, up and idle; 1 = up; 2 = suspect; 3 = half-open.
 * @param depth calls and reported work that it has now
 * @param trials instances for which a half-open breaker is no reason against them
 */
export function tierOf(
  instance: InstanceSnapshot,
  depth: number,
  trials: ReadonlySet<string> | undefined,
): number {
  if (instance.breaker_until_ms !== null && trials?.has(instance.instance_id) !== true) return halfOpenTier;
  if (instance.state === 'suspect') return 2;
  return instance.rate_usd === 0 && depth === 0 && instance.is_local ? 0 : 1;
}
