/**
 * How many slots of a free instance a process leases, and when it gives them back. The invariants of leases (S1 to S10)
 * are in docs/contributing/leased-slots.md. Slots are asked for and given back by the same request: 0 gives back all.
 */
import type { InstanceSnapshot } from './types.ts';

/** An instance with fewer slots is claimed call by call: one idle slot is then never promised to two. */
export const leastDeclared = 8;
/** How long a lease lasts without a renewal. */
export const leaseMs = 2_000;
/** A holder stops using a lease this long before its end. */
export const marginMs = 500;
/** A snapshot of the fleet older than this allows no call on a leased slot. */
export const freshMs = 1_000;
/** An open call is recorded, and takes its slot from the lease, after this time. */
export const openMs = 40;

const renewMs = 500;
const growMs = 50;
const quietMs = 200;
const pauseMs = 1_000;
/** Calls that follow one another within this time are traffic. */
const gapMs = 50;
const leastCalls = 3;
const leastAsked = 2;
/** An instance without a lease and without calls for this time is forgotten. */
const forgetMs = 100;
/** A call that takes longer gains nothing from a lease. */
const longestCallMs = 250;

type Leasable = Pick<
  InstanceSnapshot,
  'cost_type' | 'rate_usd' | 'max_concurrency' | 'state' | 'breaker_until_ms' | 'duration_ms' | 'host'
>;

/** Free, with enough slots of its own and short calls, up, its breaker closed. */
export function isLeasable(instance: Leasable): boolean {
  const { cost_type, rate_usd, state, breaker_until_ms, duration_ms, host } = instance;
  const isFree = cost_type === 'free' && rate_usd === 0;
  const isUp = state === 'up' && breaker_until_ms === null;
  const isShort = duration_ms === null || duration_ms <= longestCallMs;
  const hasOwnSlots = host == null && instance.max_concurrency >= leastDeclared;
  return isFree && isUp && isShort && hasOwnSlots;
}

/** The lease of a process on one instance, and the calls that could use it. */
export interface LeaseFacts {
  /** Slots that the database holds for the process; 0: none. */
  readonly granted: number;
  /** Calls begin while fewer are in use; at most `granted`. */
  readonly slots: number;
  readonly used: number;
  /** The most that were in use at once since the last request. */
  readonly peak: number;
  /** Calls since the last request that found no leased slot. */
  readonly missed: number;
  /** Calls in a row with at most 50 ms between them. */
  readonly streak: number;
  readonly lastCallMs: number;
  readonly askedAtMs: number;
  /** Another router waits for a slot, or the instance failed a call, since this time. */
  readonly givesUpAtMs: number;
  /** The instance may be called on leased slots. */
  readonly isUsable: boolean;
}

export const noTraffic: LeaseFacts = {
  granted: 0,
  slots: 0,
  used: 0,
  peak: 0,
  missed: 0,
  streak: 0,
  lastCallMs: Number.NEGATIVE_INFINITY,
  askedAtMs: Number.NEGATIVE_INFINITY,
  givesUpAtMs: Number.NEGATIVE_INFINITY,
  isUsable: true,
};

/** Counts a call. Its properties are named, since a copy of a copy is slow. @param isServed it has a leased slot */
export function countCall(facts: LeaseFacts, nowMs: number, isServed: boolean): LeaseFacts {
  const { granted, slots, askedAtMs, givesUpAtMs, isUsable } = facts;
  const used = facts.used + (isServed ? 1 : 0);
  const peak = Math.max(facts.peak, used);
  const missed = facts.missed + (isServed ? 0 : 1);
  const streak = nowMs - facts.lastCallMs <= gapMs ? facts.streak + 1 : 1;
  return { granted, slots, used, peak, missed, streak, lastCallMs: nowMs, askedAtMs, givesUpAtMs, isUsable };
}

/** A call on a leased slot has ended. */
export function endCall(facts: LeaseFacts): LeaseFacts {
  const { granted, slots, used, peak, missed, streak, lastCallMs, askedAtMs, givesUpAtMs, isUsable } = facts;
  const left = used - 1;
  return { granted, slots, used: left, peak, missed, streak, lastCallMs, askedAtMs, givesUpAtMs, isUsable };
}

/** A request is sent: from now on calls begin on no more slots than it asks for. */
export function beginAsking(facts: LeaseFacts, asked: number, nowMs: number): LeaseFacts {
  const slots = Math.min(facts.slots, asked);
  return { ...facts, slots, peak: facts.used, missed: 0, askedAtMs: nowMs };
}

/** The answer to a request. A slot that was given up meanwhile stays given up. */
export function endAsking(facts: LeaseFacts, asked: number, granted: number): LeaseFacts {
  const most = facts.givesUpAtMs >= facts.askedAtMs ? facts.slots : asked;
  return { ...facts, granted, slots: Math.min(granted, most) };
}

/** Others get half of the slots, or all of them, and for a second no more are asked for. */
export function giveUp(facts: LeaseFacts, nowMs: number, left: 'half' | 'none'): LeaseFacts {
  return { ...facts, slots: left === 'half' ? facts.slots >> 1 : 0, givesUpAtMs: nowMs };
}

/** A call takes its slot from the lease. */
export function moveSlot(facts: LeaseFacts): LeaseFacts {
  const granted = Math.max(0, facts.granted - 1);
  return { ...facts, granted, used: facts.used - 1, slots: Math.min(facts.slots, granted) };
}

/** Whether nothing of it is needed any more. */
export function isOver({ granted, used, lastCallMs, givesUpAtMs }: LeaseFacts, nowMs: number): boolean {
  return granted === 0 && used === 0 && nowMs - lastCallMs > forgetMs && nowMs - givesUpAtMs > pauseMs;
}

/** Doubles while calls find no slot; else as many as were in use at once, and a quarter more. */
function demandOf({ slots, peak, missed }: LeaseFacts): number {
  return Math.max(leastAsked, missed > 0 ? 2 * slots : Math.ceil(1.25 * peak));
}

/** @returns how many slots to ask for now; 0: give back all; null: nothing to do */
export function slotsToAsk(facts: LeaseFacts, nowMs: number): number | null {
  const { granted, slots, used, missed, streak, lastCallMs, askedAtMs, givesUpAtMs, isUsable } = facts;
  const sinceMs = nowMs - askedAtMs;
  if (sinceMs < growMs) return null;
  const isGivingUp = nowMs - givesUpAtMs < pauseMs;
  if (granted === 0) {
    const isBusy = streak >= leastCalls && missed > 0 && nowMs - lastCallMs <= gapMs;
    return isUsable && isBusy && !isGivingUp ? demandOf(facts) : null;
  }
  const isQuiet = nowMs - lastCallMs > quietMs && used === 0;
  const bound = !isUsable || isQuiet ? 0 : isGivingUp ? slots : null;
  if (bound !== null && Math.max(bound, used) < granted) return bound;
  const isTight = missed > 0 && !isGivingUp;
  if (!isTight && sinceMs < renewMs) return null;
  return Math.min(bound ?? Number.POSITIVE_INFINITY, demandOf(facts));
}

/**
 * How many slots a request gets: leases fill an instance to three quarters at most, and slots in use stay held. The
 * database decides so too (`lease_slots`).
 */
export function slotsToGrant({ asked, inUse, declared, others }: SlotRequest): number {
  const share = declared < leastDeclared ? 0 : Math.trunc((declared * 3) / 4) - others;
  return Math.max(inUse, Math.min(asked, share), 0);
}

export interface SlotRequest {
  readonly asked: number;
  /** Slots of the present lease that may be in use. */
  readonly inUse: number;
  readonly declared: number;
  /** Slots that others hold, or calls without a lease. */
  readonly others: number;
}
