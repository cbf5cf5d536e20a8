/**
 * Whose turn it is in a line whose calls have keys: a line as in call-line.ts, with two rules more (residency.ts).
 * - W4: a call is not called for a free slot while waiting for an instance that has its key is sooner than a load there.
 * - W5: a call whose key is resident on a free instance passes those before it of its rank, unless the first of them has
 *   waited for 25 loads.
 */
import { aheadOf, type LineRoute } from '../routing/call-line.ts';
import { freeSlots, lineMs } from '../routing/estimate.ts';
import { createRouteFilter, excludeByRoute } from '../routing/filter.ts';
import type { InstanceSnapshot, Residency } from '../routing/types.ts';
import { type KeyedFleet, ownMs, residencyOf } from './residency.ts';

/** A call in line, of those in the order of the line. */
export interface KeyedMember {
  readonly rank: number;
  readonly waitedMs: number;
  /** Null: what is loaded does not matter to it. */
  readonly key: string | null;
  /** It was called, and is not at work yet. */
  readonly isCalled: boolean;
}

export interface LineTurn<Member> {
  readonly member: Member;
  /** Others before it were not called (W5). */
  readonly isPassing: boolean;
}

/** W5 */
const mostLoads = 25;

/** The room of an instance, as this turn of the line uses it up. */
interface Seat {
  readonly instance: InstanceSnapshot;
  free: number;
  /** Calls that wait for it. */
  pending: number;
}

class Seats {
  readonly seats: readonly Seat[];
  readonly #fleet: KeyedFleet;
  readonly #nowMs: number;
  readonly #byKey = new Map<string, NonNullable<ReturnType<typeof residencyOf>>>();

  constructor(route: LineRoute, fleet: KeyedFleet, nowMs: number) {
    const filter = createRouteFilter(route);
    this.#fleet = fleet;
    this.#nowMs = nowMs;
    this.seats = fleet.instances.flatMap((instance) => {
      const { breaker_until_ms } = instance;
      const isResting = breaker_until_ms !== null && breaker_until_ms > nowMs;
      if (isResting || excludeByRoute(instance, filter) !== null) return [];
      return [{ instance, free: freeSlots(instance, instance.held), pending: 0 }];
    });
  }

  get hasFree(): boolean {
    return this.seats.some(({ free }) => free > 0);
  }

  #found(key: string, { instance }: Seat): Residency {
    let found = this.#byKey.get(key);
    if (found === undefined) {
      found = residencyOf(this.#fleet, () => key, this.#nowMs) ?? new Map();
      this.#byKey.set(key, found);
    }
    return found.get(instance.instance_id) as Residency;
  }

  /** The longest that a load of its key takes anywhere. */
  loadMs(key: string | null): number {
    if (key === null) return 0;
    return this.seats.reduce((most, seat) => Math.max(most, this.#found(key, seat).loadMs), 0);
  }

  /** A free seat where the key is resident. */
  warm(key: string): Seat | undefined {
    return this.seats.find((seat) => seat.free > 0 && this.#found(key, seat).isResident);
  }

  /** The free seat with the least time, or the longest idle of them. */
  bestFree(key: string | null): Seat | undefined {
    const free = this.seats.filter((seat) => seat.free > 0);
    if (key === null) return free[0];
    return least(free, (seat) => {
      const found = this.#found(key, seat);
      return [ownMs(found), found.usedAtMs ?? 0];
    });
  }

  /** W4: a full seat where a call with the key would end before it would on any free one. */
  worthWaiting(key: string): Seat | undefined {
    const free = this.bestFree(key);
    const freeMs = free === undefined ? Number.POSITIVE_INFINITY : ownMs(this.#found(key, free));
    const full = this.seats.filter((seat) => seat.free === 0 && this.#found(key, seat).isResident);
    const waitMs = (seat: Seat): number => {
      const found = this.#found(key, seat);
      return lineMs(seat.instance, found, seat.pending) + ownMs(found);
    };
    const soonest = least(full, (seat) => [waitMs(seat)]);
    return soonest !== undefined && waitMs(soonest) < freeMs ? soonest : undefined;
  }
}

function least(seats: readonly Seat[], measure: (seat: Seat) => readonly number[]): Seat | undefined {
  let best: { readonly seat: Seat; readonly value: readonly number[] } | undefined;
  for (const seat of seats) {
    const value = measure(seat);
    if (best === undefined || isBelow(value, best.value)) best = { seat, value };
  }
  return best?.seat;
}

function isBelow(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at >= 0 && (a[at] as number) < (b[at] as number);
}

function take(seat: Seat | undefined): boolean {
  if (seat === undefined) return false;
  seat.free -= 1;
  return true;
}

/** @param members in the order of the line @returns those to call now */
export function callTurns<Member extends KeyedMember>(
  route: LineRoute,
  fleet: KeyedFleet,
  { members, nowMs }: { readonly members: readonly Member[]; readonly nowMs: number },
): readonly LineTurn<Member>[] {
  const seats = new Seats(route, fleet, nowMs);
  const called = members.filter(({ isCalled }) => isCalled);
  for (const { key } of called) take((key === null ? undefined : seats.warm(key)) ?? seats.bestFree(key));
  const waiting = members.filter(({ isCalled }) => !isCalled);
  const chosen = new Set<Member>();
  callWarm(seats, waiting, chosen);
  callInOrder(seats, waiting, chosen);
  callAhead(seats, waiting, { chosen, called: called.length });
  return toTurns(waiting, chosen);
}

/** W5 */
function callWarm<Member extends KeyedMember>(
  seats: Seats,
  waiting: readonly Member[],
  chosen: Set<Member>,
): void {
  let first: Member | undefined;
  for (const member of waiting) {
    if (!seats.hasFree) return;
    if (first !== undefined && mayNotPass(seats, first, member)) return;
    if (member.key !== null && take(seats.warm(member.key))) chosen.add(member);
    else first ??= member;
  }
}

function mayNotPass(seats: Seats, first: KeyedMember, { rank }: KeyedMember): boolean {
  return rank !== first.rank || isLate(seats, first);
}

function isLate(seats: Seats, { key, waitedMs }: KeyedMember): boolean {
  return waitedMs >= mostLoads * seats.loadMs(key);
}

/** The free seats that are left go to those who are first, except to those who rather wait (W4). */
function callInOrder<Member extends KeyedMember>(
  seats: Seats,
  waiting: readonly Member[],
  chosen: Set<Member>,
): void {
  for (const member of waiting) {
    if (!seats.hasFree) return;
    if (chosen.has(member)) continue;
    const { key } = member;
    const awaited = key === null || isLate(seats, member) ? undefined : seats.worthWaiting(key);
    if (awaited !== undefined) awaited.pending += 1;
    else if (take(seats.bestFree(key))) chosen.add(member);
  }
}

/** Calls that take longer are not called in advance: what would be free when they come is unknown. */
const shortMs = 1_000;

/** Short calls end before a called one arrives. Where a slot is free, those that are left wait for another one (W4). */
function callAhead<Member extends KeyedMember>(
  seats: Seats,
  waiting: readonly Member[],
  { chosen, called }: { readonly chosen: Set<Member>; readonly called: number },
): void {
  if (seats.hasFree) return;
  const instances = seats.seats.map(({ instance }) => instance);
  const short = instances.filter(({ duration_ms }) => duration_ms !== null && duration_ms <= shortMs);
  const slots = instances.reduce((sum, instance) => sum + freeSlots(instance, instance.held), 0);
  let more = Math.floor(aheadOf(short)) - Math.max(0, called + chosen.size - slots);
  for (const member of waiting) {
    if (more <= 0) return;
    if (chosen.has(member)) continue;
    chosen.add(member);
    more -= 1;
  }
}

function toTurns<Member extends KeyedMember>(
  waiting: readonly Member[],
  chosen: ReadonlySet<Member>,
): readonly LineTurn<Member>[] {
  let isPassing = false;
  return waiting.flatMap((member) => {
    if (chosen.has(member)) return [{ member, isPassing }];
    isPassing = true;
    return [];
  });
}
