/**
 * The line of calls that wait for a free slot. Its rules, for the router with rows of the database and for mocks:
 * - N1: calls of one route (capability, version range, tags) wait in one line, by priority, then place, then age. A
 *   project with instances of its own has lines of its own: its calls wait for other slots than those of others.
 * - N2: runs take turns. A call's place comes after the last place of its run in the line, and after the highest place
 *   of its priority that was called; so the first call of a new run comes before the second waiting call of any other run.
 * - N3: a call leaves the line when it is called, which happens when a slot is free, or about to be. Called without a
 *   result, it keeps its place, and lets others go first for a moment.
 * - N4: a step's call that has not been called takes no slot while calls of its priority or a higher one wait in line.
 * - N5: a call that rather waited for a full instance than to take one that was free is not called for that one, as long
 *   as it is not asked again and the full one takes calls.
 */

import { uncountedDelay } from '../call/retry.ts';
import type { Priority } from '../contracts/primitives.ts';
import { hostOf } from '../hosts/shared-hosts.ts';
import { freeSlots, slotsOf } from './estimate.ts';
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
export const handoverMs = 500;
/** Calls in advance, per slot: short calls end faster than others are called. */
const mostAhead = 4;
/** Where calls do not take any slot, those that take longer are not called in advance. */
const shortMs = 1_000;
/** A call that frees its slot once it is accepted holds it about so long, whatever its work takes. */
const acceptMs = 100;

function heldMsOf({ answers_later, duration_ms }: InstanceSnapshot): number | null {
  return answers_later === 'freed' ? acceptMs : duration_ms;
}

/** Its calls end before a called one arrives. */
export function isShort(instance: InstanceSnapshot): boolean {
  const heldMs = heldMsOf(instance);
  return heldMs !== null && heldMs <= shortMs;
}

/** Adds up what instances have, where those of one host have no more together than one of them may have of it. */
function sumOf(
  instances: readonly InstanceSnapshot[],
  own: (instance: InstanceSnapshot) => number,
  ofHost: (instance: InstanceSnapshot) => number,
): number {
  const hosts = new Map<string, { readonly own: number; readonly most: number }>();
  let sum = 0;
  for (const instance of instances) {
    const host = hostOf(instance);
    if (host === null) sum += own(instance);
    else {
      const { own: before, most } = hosts.get(host) ?? { own: 0, most: 0 };
      hosts.set(host, { own: before + own(instance), most: Math.max(most, ofHost(instance)) });
    }
  }
  for (const { own: all, most } of hosts.values()) sum += Math.min(all, most);
  return sum;
}

/** Calls that end on a slot before a called one arrives. */
function endsAhead(instance: InstanceSnapshot): number {
  const heldMs = heldMsOf(instance);
  return heldMs === null || heldMs <= 0 ? 0 : Math.min(mostAhead, handoverMs / heldMs);
}

/** Calls that can be called before a slot is free for them. */
export function aheadOf(instances: readonly InstanceSnapshot[]): number {
  return sumOf(
    instances,
    (instance) => slotsOf(instance) * endsAhead(instance),
    (instance) => (instance.host_calls ?? 0) * endsAhead(instance),
  );
}

/** Free or not. */
export function countSlots(instances: readonly InstanceSnapshot[]): number {
  return sumOf(instances, slotsOf, ({ host_calls }) => host_calls ?? 0);
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
  return sumOf(
    instances,
    (instance) => freeSlots(instance, instance.held),
    ({ host_room }) => host_room ?? 0,
  );
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

/** N5 */
export interface SlotRefusal {
  /** The full instance that it rather waits for than to take one that was free; null: it takes any. */
  readonly awaits: string | null;
  /** Those that were free; null: all but the awaited one. */
  readonly refuses: readonly string[] | null;
}

/** What a call in line waits for. */
export interface LineWish extends SlotRefusal {
  /** The key of what it needs loaded; null: nothing. */
  readonly key: string | null;
}

export const anySlot: SlotRefusal = { awaits: null, refuses: null };

/** More are not listed. */
const mostRefused = 50;

/** N5: an instance that has recovered has another name, so that what was refused in a doubtful state is asked again. */
export function refusedAs({ instance_id, state, breaker_until_ms }: InstanceSnapshot): string {
  const isDoubtful = state !== 'up' || breaker_until_ms !== null;
  return isDoubtful ? `${instance_id}?` : instance_id;
}

export function hasRoom(instance: InstanceSnapshot): boolean {
  return freeSlots(instance, instance.held) > 0;
}

/** N5. @param awaited the full instance that is the best for a call @param able those that calls of its line may take */
export function refusalOf(awaited: InstanceSnapshot, able: readonly InstanceSnapshot[]): SlotRefusal {
  const others = able.filter((one) => one.instance_id !== awaited.instance_id && hasRoom(one));
  const refuses = others.map(refusedAs);
  if (refuses.length === 0) return anySlot;
  return { awaits: awaited.instance_id, refuses: refuses.length > mostRefused ? null : refuses };
}

/** N5. @param able the ids of the instances that calls of the line may take: without the awaited one, it takes any */
export function accepts(
  { awaits, refuses }: SlotRefusal,
  instance: InstanceSnapshot,
  able: ReadonlySet<string>,
): boolean {
  if (awaits === null || awaits === instance.instance_id || !able.has(awaits)) return true;
  return refuses !== null && !refuses.includes(refusedAs(instance));
}

/** N3: how long a call that was called without a result lets others go first, ms. @param calls how often, from 1 */
export function standAsideMs(calls: number): number {
  const { initialMs, factor, maxDelayMs } = uncountedDelay;
  return Math.min(maxDelayMs, initialMs * factor ** (calls - 1));
}
