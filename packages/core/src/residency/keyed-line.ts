/**
 * Whose turn it is in a line whose calls do not take any slot (N5 in call-line.ts), or have keys (residency.ts):
 * - W4: a call is not called for a free slot while waiting for an instance that has its key is sooner than a load there.
 *   A key that is only listed counts half a load more: a report may be wrong.
 *   It lets free slots go for twice the time of a call there: then others take what it waits for.
 * - W5: a call whose key is resident on a free instance passes those before it of its rank. The first of them is still
 *   called, for a load, once it was passed for the time of 25 loads, divided by the slots of the line.
 */
import { hostOf } from '../hosts/shared-hosts.ts';
import {
  ableFor,
  accepts,
  aheadOf,
  countSlots,
  handoverMs,
  isShort,
  type LineRoute,
  type LineWish,
  type SlotRefusal,
} from '../routing/call-line.ts';
import { freeSlots, lineMs } from '../routing/estimate.ts';
import type { InstanceSnapshot, Residency } from '../routing/types.ts';
import { isOwnKey, type KeyedFleet, keyAt, keysOf, ownMs, residencyOf, serveKey } from './residency.ts';

/** A call in line, of those in the order of the line. */
export interface KeyedMember extends SlotRefusal, Pick<LineWish, 'key'> {
  readonly rank: number;
  readonly waitedMs: number;
  /** Since it let a free slot go for the first time (W4). */
  readonly letGoMs: number;
  /** It was called, and is not at work yet. */
  readonly isCalled: boolean;
}

export interface LineTurn<Member> {
  readonly member: Member;
  /** The first of its rank, which waits for any slot, was not called (W5). */
  readonly isPassing: boolean;
}

export interface LineTurns<Member> {
  /** Those to call now. */
  readonly called: readonly LineTurn<Member>[];
  /** Those that let a free slot go (W4). */
  readonly letting: readonly Member[];
}

/** W5: loads of calls that were passed take a 26th of the time of instances at most, however long the line is. */
const mostLoads = 25;

/** W4: calls of the free instance that a call waits at most. */
const patience = 2;

/** So many calls from the begin of a line are looked at. */
export const mostMembers = 200;

/** The slots of a host, for all its instances. */
interface SharedRoom {
  free: number;
  readonly seats: Seat[];
}

/** An instance, as it is after the calls of this turn. */
class Seat {
  instance: InstanceSnapshot;
  /** Calls that wait for it. */
  pending = 0;
  /** What calls find, by their key. */
  readonly found = new Map<string, Residency>();
  readonly #room: SharedRoom;
  readonly #takes: number;

  constructor(instance: InstanceSnapshot, room: SharedRoom) {
    this.instance = instance;
    this.#room = room;
    this.#takes = instance.takes ?? 1;
    room.free = Math.max(room.free, (instance.host_room ?? 0) * this.#takes);
    room.seats.push(this);
  }

  get free(): number {
    return freeSlots(this.instance, this.instance.held);
  }

  /** A call begins there. */
  take(key: string | null, nowMs: number): void {
    const { held, busy_since_ms = null, resident, max_resident } = this.instance;
    this.found.clear();
    this.instance = {
      ...this.instance,
      held: held + 1,
      busy_since_ms: held === 0 ? nowMs : busy_since_ms,
      resident: key === null ? resident : serveKey(resident ?? [], key, max_resident ?? 1),
    };
    this.#room.free -= this.#takes;
    for (const seat of this.#room.seats) seat.#share();
  }

  #share(): void {
    if (this.instance.host_room == null) return;
    const room = Math.max(0, Math.floor(this.#room.free / this.#takes));
    this.instance = { ...this.instance, host_room: room };
  }
}

function toSeats(instances: readonly InstanceSnapshot[]): readonly Seat[] {
  const rooms = new Map<string, SharedRoom>();
  return instances.map((instance) => {
    const place = hostOf(instance) ?? instance.instance_id;
    const room = rooms.get(place) ?? { free: 0, seats: [] };
    rooms.set(place, room);
    return new Seat(instance, room);
  });
}

/** What a call with a key finds where no key counts: nothing to load. */
function withoutKey({ duration_ms }: InstanceSnapshot, key: string, priorMs: number): Residency {
  const times = { warmMs: duration_ms ?? priorMs, loadMs: 0, leftMs: 0, pace: 1 };
  return { key, isResident: false, isListed: false, isLearnt: false, usedAtMs: null, ...times };
}

class Seats {
  readonly seats: readonly Seat[];
  /** Free or not. */
  readonly slots: number;
  readonly #fleet: KeyedFleet;
  readonly #able: ReadonlySet<string>;
  readonly #nowMs: number;
  /** Where the key of a capability counts: where it is declared; everywhere, if no instance does, as then the steps do. */
  readonly #isKeyed: (instance: InstanceSnapshot) => boolean;
  /** Those with a free slot. */
  #open: readonly Seat[];
  /** By key: those that may have it. */
  readonly #holders = new Map<string, Seat[]>();

  constructor(route: LineRoute, fleet: KeyedFleet, nowMs: number) {
    const able = ableFor(route, fleet.instances, nowMs);
    const declare = able.some(({ affinity }) => affinity != null);
    this.#fleet = fleet;
    this.#able = new Set(able.map(({ instance_id }) => instance_id));
    this.#nowMs = nowMs;
    this.#isKeyed = ({ affinity }) => !declare || affinity != null;
    this.seats = toSeats(able);
    this.slots = countSlots(able);
    this.#open = this.seats.filter(({ free }) => free > 0);
    for (const seat of this.seats) for (const key of seat.instance.resident ?? []) this.#hold(key, seat);
  }

  get hasFree(): boolean {
    return this.#open.length > 0;
  }

  #hold(key: string, seat: Seat): void {
    const holders = this.#holders.get(key);
    if (holders === undefined) this.#holders.set(key, [seat]);
    else if (!holders.includes(seat)) holders.push(seat);
  }

  #found(key: string, { instance, found }: Seat): Residency {
    const known = found.get(key);
    if (known !== undefined) return known;
    const keyOn = (): string | null => (isOwnKey(key) || this.#isKeyed(instance) ? key : null);
    const own = residencyOf({ ...this.#fleet, instances: [instance] }, keyOn, this.#nowMs);
    const residency = own?.get(instance.instance_id) ?? withoutKey(instance, key, this.#fleet.priorMs);
    found.set(key, residency);
    return residency;
  }

  /** A call begins there. @returns false: there is no seat */
  take(seat: Seat | undefined, { key }: KeyedMember): boolean {
    if (seat === undefined) return false;
    const there = key === null ? null : keyAt(key, seat.instance);
    seat.take(there, this.#nowMs);
    if (there !== null) this.#hold(there, seat);
    this.#open = this.#open.filter(({ free }) => free > 0);
    return true;
  }

  /** The longest that a load of its key takes anywhere. */
  loadMs(key: string | null): number {
    if (key === null) return 0;
    return this.seats.reduce((most, seat) => Math.max(most, this.#found(key, seat).loadMs), 0);
  }

  /** It makes no difference for the call which of them it gets. */
  isAlike(seats: readonly Seat[], { key }: KeyedMember): boolean {
    if (key === null) return true;
    return seats.every((seat) => {
      const { isResident, loadMs } = this.#found(key, seat);
      return isResident || loadMs <= handoverMs;
    });
  }

  /** N5 */
  accepted(member: KeyedMember, seats = this.seats): readonly Seat[] {
    return seats.filter(({ instance }) => accepts(member, instance, this.#able));
  }

  /** Where its key is resident. */
  #warm(member: KeyedMember): readonly Seat[] {
    const { key } = member;
    if (key === null) return [];
    const holders = keysOf(key).flatMap((one) => this.#holders.get(one) ?? []);
    return this.accepted(member, holders).filter((seat) => this.#found(key, seat).isResident);
  }

  /** A free seat where its key is resident. */
  warm(member: KeyedMember): Seat | undefined {
    return this.#warm(member).find(({ free }) => free > 0);
  }

  /** The free seat with the least time, or the longest idle of them; without a key, the first. */
  bestFree(member: KeyedMember): Seat | undefined {
    const { key } = member;
    const free = this.accepted(member, this.#open);
    if (key === null) return free.find(({ instance }) => instance.instance_id === member.awaits) ?? free[0];
    return least(free, (seat) => {
      const found = this.#found(key, seat);
      return [ownMs(found), found.usedAtMs ?? 0];
    });
  }

  /** W4: a full seat where a call with the key would end before it would on any free one. */
  worthWaiting(member: KeyedMember): Seat | undefined {
    const { key } = member;
    if (key === null) return undefined;
    const free = this.bestFree(member);
    const freeMs = free === undefined ? Number.POSITIVE_INFINITY : ownMs(this.#found(key, free));
    const waitMs = (seat: Seat): number => {
      const found = this.#found(key, seat);
      const doubtMs = found.isListed ? found.loadMs / 2 : 0;
      return lineMs(seat.instance, found, seat.pending) + ownMs(found) + doubtMs;
    };
    const soonest = least(this.#warm(member), (seat) => [waitMs(seat)]); // no free one is sooner than the best
    if (soonest === undefined || waitMs(soonest) >= freeMs) return undefined;
    return member.letGoMs < patience * freeMs ? soonest : undefined;
  }

  /** Calls wait for no seat, as before a look at them. */
  forgetWaiting(): void {
    for (const seat of this.seats) seat.pending = 0;
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

/** W4: when the calls of a line first let a free slot go, by whatever names a call. */
export class Patience<Id> {
  readonly #sinceMs = new Map<Id, number>();

  letGoMs(id: Id, nowMs: number): number {
    return nowMs - (this.#sinceMs.get(id) ?? nowMs);
  }

  /** After a look at the line. @param members all calls that it saw */
  note(members: readonly Id[], letting: readonly Id[], nowMs: number): void {
    const present = new Set(members);
    for (const id of this.#sinceMs.keys()) if (!present.has(id)) this.#sinceMs.delete(id);
    for (const id of letting) if (!this.#sinceMs.has(id)) this.#sinceMs.set(id, nowMs);
  }
}

export interface LineNow<Member> {
  /** In the order of the line, at most 200. */
  readonly members: readonly Member[];
  readonly nowMs: number;
  /** How long ago a call of a rank was last called that passed no other of it; infinite: never. */
  readonly sinceTurnMs: (rank: number) => number;
}

export function callTurns<Member extends KeyedMember>(
  route: LineRoute,
  fleet: KeyedFleet,
  { members, nowMs, sinceTurnMs }: LineNow<Member>,
): LineTurns<Member> {
  const seats = new Seats(route, fleet, nowMs);
  const called = members.filter(({ isCalled }) => isCalled);
  const ahead = called.filter((member) => !seats.take(seats.warm(member) ?? seats.bestFree(member), member));
  const waiting = members.filter(({ isCalled }) => !isCalled);
  const chosen = new Set<Member>();
  const letting = new Set<Member>();
  const passing = callWarm(seats, waiting, { chosen, letting, sinceTurnMs });
  seats.forgetWaiting();
  callInOrder(seats, waiting, { chosen, letting });
  callAhead(seats, waiting, { chosen, ahead: ahead.length });
  const isPassed = passing.first !== undefined && !chosen.has(passing.first);
  const turns = waiting.filter((member) => chosen.has(member));
  return {
    called: turns.map((member) => ({ member, isPassing: isPassed && passing.others.has(member) })),
    letting: [...letting],
  };
}

interface Passing<Member> {
  /** It waits for any slot, and is passed. */
  readonly first: Member | undefined;
  readonly others: ReadonlySet<Member>;
}

interface TurnsSoFar<Member> {
  readonly chosen: Set<Member>;
  /** Those that a free slot which they accept was not for: they rather wait (W4). */
  readonly letting: Set<Member>;
}

/** W5 */
function callWarm<Member extends KeyedMember>(
  seats: Seats,
  waiting: readonly Member[],
  { chosen, letting, sinceTurnMs }: TurnsSoFar<Member> & Pick<LineNow<Member>, 'sinceTurnMs'>,
): Passing<Member> {
  let first: Member | undefined;
  const others = new Set<Member>();
  let hasCalledFirst = false;
  for (const member of waiting) {
    const sinceMs = hasCalledFirst ? 0 : sinceTurnMs(member.rank);
    if (!seats.hasFree || (first !== undefined && member.rank !== first.rank)) break;
    if (seats.take(seats.warm(member), member)) {
      chosen.add(member);
      if (first !== undefined) others.add(member);
    } else if (first === undefined && takesAny(seats, member, letting)) {
      if (isDue(seats, member, sinceMs) && seats.take(seats.bestFree(member), member)) {
        chosen.add(member);
        hasCalledFirst = true;
      } else first = member;
    }
  }
  return { first, others };
}

/** A slot that it accepts is free, and it does not rather wait (W4), behind those before it. */
function takesAny<Member extends KeyedMember>(seats: Seats, member: Member, letting: Set<Member>): boolean {
  if (seats.bestFree(member) === undefined) return false;
  const awaited = seats.worthWaiting(member);
  if (awaited === undefined) return true;
  awaited.pending += 1;
  letting.add(member);
  return false;
}

/** It was passed long enough. */
function isDue(seats: Seats, { key, waitedMs }: KeyedMember, sinceTurnMs: number): boolean {
  return Math.min(waitedMs, sinceTurnMs) >= (mostLoads * seats.loadMs(key)) / seats.slots;
}

/** The free seats that are left go to those who are first, except to those who rather wait (W4). */
function callInOrder<Member extends KeyedMember>(
  seats: Seats,
  waiting: readonly Member[],
  { chosen, letting }: TurnsSoFar<Member>,
): void {
  for (const member of waiting) {
    if (!seats.hasFree) break;
    if (chosen.has(member)) continue;
    const awaited = seats.worthWaiting(member);
    const free = seats.bestFree(member);
    if (awaited === undefined) {
      if (seats.take(free, member)) chosen.add(member);
    } else {
      awaited.pending += 1;
      if (free !== undefined) letting.add(member);
    }
  }
}

/**
 * Short calls end before a called one arrives, which is called for a full seat then. Where a slot is free, those that are
 * left wait for another one (W4). A called call takes the seat that becomes free first, so a call whose key takes long to
 * load is called for seats that have it all.
 */
function callAhead<Member extends KeyedMember>(
  seats: Seats,
  waiting: readonly Member[],
  { chosen, ahead }: { readonly chosen: Set<Member>; readonly ahead: number },
): void {
  const short = seats.seats.filter(({ free, instance }) => free === 0 && isShort(instance));
  let more = Math.floor(aheadOf(short.map(({ instance }) => instance))) - ahead;
  for (const member of waiting) {
    if (more <= 0) return;
    const accepted = seats.accepted(member);
    if (chosen.has(member) || accepted.some(({ free }) => free > 0)) continue;
    const soon = accepted.filter((seat) => short.includes(seat));
    if (soon.length === 0 || !seats.isAlike(soon, member)) continue;
    chosen.add(member);
    more -= 1;
  }
}
