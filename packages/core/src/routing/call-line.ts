/**
 * The line of calls that wait for a free slot. Its rules, for the router with rows of the database and for mocks:
 * - N1: calls of one route (capability, version range, tags) wait in one line, by priority, then place, then age. A
 *   project with instances of its own has lines of its own: its calls wait for other slots than those of others.
 * - N2: runs take turns. A call's place comes after the last place of its run in the line, and after the highest place
 *   that was called; so the first call of a new run comes before the second waiting call of any other run.
 * - N3: a call leaves the line when it is called, which happens when a slot is free, or about to be. Called without a
 *   result, it keeps its place, and lets others go first for a moment.
 * - N4: a step's call that has not been called takes no slot while calls of its priority or a higher one wait in line.
 * - N5: a call that rather waits for a full instance than to take a free one is called for that instance, or for one that
 *   is as good, and not for others.
 */

import { uncountedDelay } from '../call/retry.ts';
import type { Priority } from '../contracts/primitives.ts';
import { expectedCost, freeSlots } from './estimate.ts';
import { createRouteFilter, excludeByRoute } from './filter.ts';
import type { InstanceSnapshot, RouteConstraints } from './types.ts';

/** The part of a route that all calls of a line share. */
export interface LineRoute extends Pick<RouteConstraints, 'capability' | 'versionRange' | 'tags'> {
  /** The project, where it has instances that do not serve all projects; absent or null: the line of all others. */
  readonly scope?: string | null;
}

const ranks: Readonly<Record<Priority, number>> = { interactive: 1, standard: 2, batch: 3 };

/** 1 goes first. */
export function rankOf(priority: Priority): number {
  return ranks[priority];
}

/** The name of a route's line. */
export function lineOf({ scope = null, capability, versionRange, tags }: LineRoute): string {
  if (scope !== null) return JSON.stringify({ scope, capability, versionRange, tags: [...tags].sort() });
  if (versionRange === null && tags.length === 0) return capability;
  return JSON.stringify([capability, versionRange, ...[...tags].sort()]);
}

/** The route of a line by its name. */
export function routeOfLine(line: string): LineRoute {
  if (line.startsWith('{')) return JSON.parse(line) as LineRoute;
  if (!line.startsWith('[')) return { capability: line, versionRange: null, tags: [] };
  const [capability, versionRange, ...tags] = JSON.parse(line) as [string, string | null, ...string[]];
  return { capability, versionRange, tags };
}

/** A call in line. */
export interface PlaceInLine {
  readonly rank: number;
  readonly place: number;
  /** Unix time, ms. */
  readonly queuedAtMs: number;
}

/** N1: negative when `a` goes first. */
export function compareInLine(a: PlaceInLine, b: PlaceInLine): number {
  return a.rank - b.rank || a.place - b.place || a.queuedAtMs - b.queuedAtMs;
}

/** N2. @param lastOfRun the last place of its run in the line; 0 = it has none @param served the highest place called */
export function nextPlace(lastOfRun: number, served: number): number {
  return Math.max(lastOfRun, served) + 1;
}

/** The time from a release to the claim of a call that was called: polls, a signal, an activity. */
const handoverMs = 500;
/** Calls in advance, per slot: short calls end faster than others are called. */
const mostAhead = 4;
/** A call that frees its slot once it is accepted holds it about so long, whatever its work takes. */
const acceptMs = 100;

/** Calls that can be called before a slot is free for them. */
export function aheadOf(instances: readonly InstanceSnapshot[]): number {
  return instances.reduce((sum, { max_concurrency, answers_later, duration_ms }) => {
    const heldMs = answers_later === 'freed' ? acceptMs : duration_ms;
    if (heldMs === null || heldMs <= 0) return sum;
    return sum + max_concurrency * Math.min(mostAhead, handoverMs / heldMs);
  }, 0);
}

/** The instances that calls of a route may take now. */
export function ableFor(
  route: LineRoute,
  instances: readonly InstanceSnapshot[],
  nowMs: number,
): readonly InstanceSnapshot[] {
  const filter = createRouteFilter(route);
  return instances.filter((instance) => {
    const { breaker_until_ms } = instance;
    const isResting = breaker_until_ms !== null && breaker_until_ms > nowMs;
    return !isResting && excludeByRoute(instance, filter) === null;
  });
}

export function countFree(instances: readonly InstanceSnapshot[]): number {
  return instances.reduce((sum, instance) => sum + freeSlots(instance, instance.held), 0);
}

/** How many calls of a route can be called: for free slots, and for those that are free before a called one arrives. */
export function countCallable(
  route: LineRoute,
  instances: readonly InstanceSnapshot[],
  { called, nowMs }: { readonly called: number; readonly nowMs: number },
): number {
  const able = ableFor(route, instances, nowMs);
  return Math.max(0, countFree(able) + Math.floor(aheadOf(able)) - called);
}

/** What a call in line waits for. */
export interface LineWish {
  /** The key of what it needs loaded; null: nothing. */
  readonly key: string | null;
  /** The full instance that was better for it than any other; null: there was none. */
  readonly instanceId: string | null;
}

/** The instances that calls of a line may take now. */
interface AbleFleet {
  readonly able: readonly InstanceSnapshot[];
  /** Duration assumed for instances without a call of their own. */
  readonly priorMs: number;
}

/** Costs and durations so near to one another count as equal. */
const nearCost = 1.01;
const nearDuration = 1.25;

/**
 * N5. The durations of calls with keys are not compared: they depend on what is loaded.
 * @returns whether a call with this wish takes an instance: any, if the one that it waits for takes no calls now
 */
export function acceptOf(
  { able, priorMs }: AbleFleet,
  { key, instanceId }: LineWish,
): (instance: InstanceSnapshot) => boolean {
  const awaited = able.find(({ instance_id }) => instance_id === instanceId);
  if (awaited === undefined) return () => true;
  const durationOf = ({ duration_ms }: InstanceSnapshot): number => duration_ms ?? priorMs;
  const mostUsd = nearCost * expectedCost(awaited, { priorMs });
  const mostMs = key === null ? nearDuration * durationOf(awaited) : Number.POSITIVE_INFINITY;
  return (one) => expectedCost(one, { priorMs }) <= mostUsd && durationOf(one) <= mostMs;
}

function withFreeSlots({ able }: AbleFleet): readonly InstanceSnapshot[] {
  return able.filter((instance) => freeSlots(instance, instance.held) > 0);
}

/** N5. @returns the instance that a call rather waits for than to take one that is free; null: any will do */
export function awaitedBy(fleet: AbleFleet, wish: LineWish): string | null {
  const free = withFreeSlots(fleet);
  return free.length === 0 || free.some(acceptOf(fleet, wish)) ? null : wish.instanceId;
}

/** N5. @returns those of the awaited instances for whose calls a slot is free, maybe that of another one */
export function openAmong(awaited: readonly string[], fleet: AbleFleet): readonly string[] {
  const free = withFreeSlots(fleet);
  return awaited.filter((instanceId) => free.some(acceptOf(fleet, { key: '', instanceId })));
}

/** N3: how long a call that was called without a result lets others go first, ms. @param calls how often, from 1 */
export function standAsideMs(calls: number): number {
  const { initialMs, factor, maxDelayMs } = uncountedDelay;
  return Math.min(maxDelayMs, initialMs * factor ** (calls - 1));
}
