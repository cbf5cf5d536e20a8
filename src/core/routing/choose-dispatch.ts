/**
 * Whether calls are short enough to do without a queue: by what is known of the instances that a route may lead to,
 * whatever a call costs and whoever is free. One that is slow is enough against it, and so is too little known. Slower
 * calls, or fewer of them, never speak for it.
 */
import type { DispatchChoice } from '../../contracts/dispatch.ts';
import { longCallMs } from './estimate.ts';
import { createRouteFilter, excludeByRoute } from './filter.ts';
import type { InstanceSnapshot, RouteConstraints } from './types.ts';

/** Nine of ten calls of a short step take at most so long, ms. */
export const mostShortMs = 100;
/** So many calls must be known. */
export const fewestKnownCalls = 5;

/** Rounded up, so that what is over a limit is shown as over it. */
function showMs(ms: number): number {
  return Math.ceil(ms * 10) / 10;
}

/**
 * The counts of an instance are weights that decay by a fiftieth with each call, so that five calls in a row weigh 4.8
 * and four at most 4: rounded, they are counted as what they are.
 */
function countCalls({ success_count, failure_count }: InstanceSnapshot): number {
  return success_count + failure_count;
}

/** @param instances every known instance of the capability */
export function chooseDispatch(
  instances: readonly InstanceSnapshot[],
  route: Pick<RouteConstraints, 'versionRange' | 'tags'>,
): DispatchChoice {
  const filter = createRouteFilter(route);
  let weight = 0;
  let slowestMs: number | null = null;
  for (const instance of instances) {
    const { duration_ms, deviation_ms } = instance;
    if (duration_ms === null || excludeByRoute(instance, filter) !== null) continue;
    weight += countCalls(instance);
    slowestMs = Math.max(slowestMs ?? 0, longCallMs(duration_ms, deviation_ms));
  }
  const calls = Math.round(weight);
  if (slowestMs === null) return { how: 'queued', code: 'unknown', calls };
  const known = { calls, p90_ms: showMs(slowestMs) };
  if (slowestMs > mostShortMs) return { how: 'queued', code: 'slow', ...known };
  return calls < fewestKnownCalls
    ? { how: 'queued', code: 'unknown', ...known }
    : { how: 'inline', code: 'short', ...known };
}
