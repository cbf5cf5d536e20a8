/**
 * Whose turn it is in a line whose calls do not take any slot (N5 in call-line.ts), or have keys (residency.ts):
 * - W4: a call is not called for a free slot while waiting for an instance that has its key is sooner than a load there.
 * - W5: a call whose key is resident on a free instance passes those before it of its rank. The first of them is still
 *   called, for a load, once it was passed for the time of 25 loads, divided by the slots of the line.
 */
import {
  ableFor,
  acceptOf,
  aheadOf,
  countFree,
  type LineRoute,
  type LineWish,
} from '../routing/call-line.ts';
import { expectedCost, freeSlots, lineMs, slotsOf } from '../routing/estimate.ts';
import type { InstanceSnapshot, Residency } from '../routing/types.ts';
import { type KeyedFleet, ownMs, residencyOf, serveKey } from './residency.ts';

/** A call in line, of those in the order of the line. */
export interface KeyedMember extends LineWish {
  readonly rank: number;
  readonly waitedMs: number;
  /** It was called, and is not at work yet. */
  readonly isCalled: boolean;
}

export interface LineTurn<Member> {
  readonly member: Member;
  /** Others before it were not called (W5). */
  readonly isPassing: boolean;
}

/** W5: loads of calls that were passed take a 26th of the time of instances at most, however long the line is. */
const mostLoads = 25;

/** So many calls from the begin of a line are looked at. */
export const mostMembers = 200;

/** An instance, as it is after the calls of this turn. */
interface Seat {
  instance: InstanceSnapshot;
  free: number;
  /** Calls that wait for it. */
  pending: number;
  /** What calls find, by their key. */
  readonly found: Map<string, Residency>;
}

class Seats {
  readonly seats: readonly Seat[];
  /** Free or not. */
  readonly slots: number;
  /** The slots that were free at first. */
  readonly room: number;
  readonly #fleet: KeyedFleet;
  readonly #able: readonly InstanceSnapshot[];
  readonly #nowMs: number;

  constructor(route: LineRoute, fleet: KeyedFleet, nowMs: number) {
    const able = ableFor(route, fleet.instances, nowMs);
    this.#fleet = fleet;
    this.#able = able;
    this.#nowMs = nowMs;
    this.seats = able.map((instance) => {
      return { instance, free: freeSlots(instance, instance.held), pending: 0, found: new Map() };
    });
    this.slots = able.reduce((sum, instance) => sum + slotsOf(instance), 0);
    this.room = countFree(able);
  }

  get hasFree(): boolean {
    return this.seats.some(({ free }) => free > 0);
  }

  #found(key: string, { instance, found }: Seat): Residency {
    const known = found.get(key);
    if (known !== undefined) return known;
    const own = residencyOf({ ...this.#fleet, instances: [instance] }, () => key, this.#nowMs);
    const residency = own?.get(instance.instance_id) as Residency;
    found.set(key, residency);
    return residency;
  }

  /** A call begins there. @returns false: there is no seat */
  take(seat: Seat | undefined, { key }: LineWish): boolean {
    if (seat === undefined) return false;
    const { instance } = seat;
    const { held, busy_since_ms = null, resident, max_resident } = instance;
    seat.free -= 1;
    seat.found.clear();
    seat.instance = {
      ...instance,
      held: held + 1,
      busy_since_ms: held === 0 ? this.#nowMs : busy_since_ms,
      resident: key === null ? resident : serveKey(resident ?? [], key, max_resident ?? 1),
    };
    return true;
  }

  /** The longest that a load of its key takes anywhere. */
  loadMs(key: string | null): number {
    if (key === null) return 0;
    return this.seats.reduce((most, seat) => Math.max(most, this.#found(key, seat).loadMs), 0);
  }

  /** N5 */
  #free(wish: LineWish): readonly Seat[] {
    const accepts = acceptOf({ able: this.#able, priorMs: this.#fleet.priorMs }, wish);
    return this.seats.filter(({ free, instance }) => free > 0 && accepts(instance));
  }

  /** A free seat where its key is resident. */
  warm(wish: LineWish): Seat | undefined {
    const { key } = wish;
    if (key === null) return undefined;
    return this.#free(wish).find((seat) => this.#found(key, seat).isResident);
  }

  /** The free seat with the least time, or the longest idle of them; without a key, the cheapest. */
  bestFree(wish: LineWish): Seat | undefined {
    const { key } = wish;
    const { priorMs } = this.#fleet;
    return least(this.#free(wish), (seat) => {
      if (key === null) return [expectedCost(seat.instance, { priorMs })];
      const found = this.#found(key, seat);
      return [ownMs(found), found.usedAtMs ?? 0];
    });
  }

  /** W4: a full seat where a call with the key would end before it would on any free one. */
  worthWaiting(wish: LineWish): Seat | undefined {
    const { key } = wish;
    if (key === null) return undefined;
    const free = this.bestFree(wish);
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

export interface LineNow<Member> {
  /** In the order of the line, at most 200. */
  readonly members: readonly Member[];
  readonly nowMs: number;
  /** How long ago a call was last called that passed no other; infinite: never. */
  readonly sinceTurnMs: number;
}

/** @returns those to call now */
export function callTurns<Member extends KeyedMember>(
  route: LineRoute,
  fleet: KeyedFleet,
  { members, nowMs, sinceTurnMs }: LineNow<Member>,
): readonly LineTurn<Member>[] {
  const seats = new Seats(route, fleet, nowMs);
  const called = members.filter(({ isCalled }) => isCalled);
  for (const member of called) seats.take(seats.warm(member) ?? seats.bestFree(member), member);
  const waiting = members.filter(({ isCalled }) => !isCalled);
  const chosen = new Set<Member>();
  callWarm(seats, waiting, { chosen, sinceTurnMs });
  callInOrder(seats, waiting, chosen);
  callAhead(seats, waiting, { chosen, called: called.length });
  return toTurns(waiting, chosen);
}

/** W5 */
function callWarm<Member extends KeyedMember>(
  seats: Seats,
  waiting: readonly Member[],
  { chosen, sinceTurnMs }: { readonly chosen: Set<Member>; readonly sinceTurnMs: number },
): void {
  let first: Member | undefined;
  let sinceMs = sinceTurnMs;
  for (const member of waiting) {
    if (!seats.hasFree || (first !== undefined && member.rank !== first.rank)) return;
    if (seats.take(seats.warm(member), member)) chosen.add(member);
    else if (
      first === undefined &&
      isDue(seats, member, sinceMs) &&
      seats.take(seats.bestFree(member), member)
    ) {
      chosen.add(member);
      sinceMs = 0;
    } else first ??= member;
  }
}

/** It was passed long enough, and does not rather wait (W4). */
function isDue(seats: Seats, member: KeyedMember, sinceTurnMs: number): boolean {
  const { key, waitedMs } = member;
  const passedMs = Math.min(waitedMs, sinceTurnMs);
  return (
    passedMs >= (mostLoads * seats.loadMs(key)) / seats.slots && seats.worthWaiting(member) === undefined
  );
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
    const awaited = seats.worthWaiting(member);
    if (awaited !== undefined) awaited.pending += 1;
    else if (seats.take(seats.bestFree(member), member)) chosen.add(member);
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
  let more = Math.floor(aheadOf(short)) - Math.max(0, called + chosen.size - seats.room);
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
