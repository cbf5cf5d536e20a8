/**
 * The leases of this process on slots of free instances, and the calls that use them. Such a call waits for no
 * statement: its slot is counted in memory. It is recorded when it ends; one that is open for longer takes its slot
 * from the lease then, and continues as any claimed call. The invariants (S1 to S10) are in
 * docs/contributing/leased-slots.md, the rules of asking in core/routing/slot-leases.ts.
 */

import type { FreezeClock } from '@capstan/core/call/freezes';
import { LiveList } from '@capstan/core/live-list';
import {
  beginAsking,
  countCall,
  endAsking,
  endCall,
  freshMs,
  giveUp,
  isLeasable,
  isOver,
  type LeaseFacts,
  leaseMs,
  marginMs,
  moveSlot,
  noTraffic,
  openMs,
  slotsToAsk,
} from '@capstan/core/routing/slot-leases';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import type { AttemptEnd, Claim, EndResult } from '../../db/attempt/attempt.ts';
import { type LeasedCall, leaseSlots, requestSlots } from '../../db/attempt/slot-lease.ts';
import type { LeaseRenewer } from '../delivery/lease-renewer.ts';
import type { FleetPoller } from '../fleet/fleet-poller.ts';
import type { PartBase } from '../part.ts';
import type { AttemptWriter } from './attempt-writer.ts';

/** A call on a leased slot. */
export interface SlotUse {
  /** @param lost called when the call has lost its slot @returns ends that */
  hold(lost: () => void): () => void;
  /** Frees the slot and records the end. @param isDeferrable no caller waits for the record */
  end(end: AttemptEnd, isDeferrable: boolean): Promise<EndResult>;
}

export interface SlotLeases {
  /** A leased slot for the call, if there is one now; null: claim in the database. */
  take(claim: Claim, instance: InstanceSnapshot): SlotUse | null;
  /** A call waits for a slot of the instance, which others may have leased. */
  want(instance: InstanceSnapshot): void;
  /** The instance failed a call: nothing more begins on its leased slots. */
  giveUp(instanceId: string): void;
  /** Gives back all slots. Resolves when the database knows. */
  close(): Promise<void>;
}

interface SlotLeasesCtx extends PartBase {
  readonly fleet: FleetPoller;
  readonly freezes: FreezeClock;
  readonly attemptWriter: AttemptWriter;
  /** Of calls that have a row. */
  readonly leases: LeaseRenewer<Claim>;
}

/** The lease on one instance, and the traffic that it is for. */
interface Lease {
  facts: LeaseFacts;
  /** What the instance declared when the lease was asked for. */
  declared: number;
  /** When the last granted request was sent, by both clocks: a machine that slept stops the monotonic one. */
  sentAt: Moment;
  /** Of a request, and of open calls that take their slots from the lease: never both (S4). */
  isAsking: boolean;
  moving: number;
}

interface Moment {
  readonly ms: number;
  readonly wallMs: number;
}

const tickMs = 20;
const wantEveryMs = 250;

function now(): Moment {
  return { ms: performance.now(), wallMs: Date.now() };
}

/** S3: since before the request was sent. */
function isInForce({ facts, sentAt }: Lease, { ms, wallMs }: Moment): boolean {
  return facts.granted > 0 && Math.max(ms - sentAt.ms, wallMs - sentAt.wallMs) < leaseMs - marginMs;
}

/** S6: as the newest snapshot shows the instance, if that is new enough. */
function isUsable({ fleet }: SlotLeasesCtx, instanceId: string, declared: number): boolean {
  const instance = fleet.find(instanceId);
  if (instance === undefined || fleet.ageMs() > freshMs) return false;
  return isLeasable(instance) && instance.max_concurrency === declared;
}

/** A call on a slot of the lease, until it has a row of its own. */
class LeasedSlot implements SlotUse {
  readonly #beganAtMs = performance.now();
  readonly #ctx: SlotLeasesCtx;
  readonly #claim: Claim;
  readonly #held: Lease;
  readonly #leave: () => boolean;
  /** Whether it has a slot of its own, once it was asked for. */
  #moved: Promise<boolean> | null = null;
  #lost: (() => void) | null = null;
  #release: (() => void) | null = null;

  constructor(ctx: SlotLeasesCtx, claim: Claim, { held, open }: { held: Lease; open: LiveList<LeasedSlot> }) {
    this.#ctx = ctx;
    this.#claim = claim;
    this.#held = held;
    const entry = open.add(this);
    this.#leave = () => open.remove(entry);
    ctx.fleet.noteLeased(claim.instance_id, 1);
  }

  /** Whether it has been open for long. */
  isOld(nowMs: number): boolean {
    return nowMs - this.#beganAtMs >= openMs;
  }

  get mayMove(): boolean {
    return !this.#held.isAsking;
  }

  hold(lost: () => void): () => void {
    this.#lost = lost;
    return () => {
      this.#lost = null;
      this.#release?.();
    };
  }

  /** S5: writes the open call and takes its slot from the lease, in one statement. */
  move(): void {
    this.#leave();
    this.#held.moving += 1;
    this.#moved = this.#write().finally(() => {
      this.#held.moving -= 1;
    });
    this.#moved.catch((error: unknown) =>
      this.#ctx.logger.error({ err: error }, 'an open call was not stored'),
    );
  }

  async #write(): Promise<boolean> {
    const { attemptWriter, fleet, leases } = this.#ctx;
    const { instance_id } = this.#claim;
    const isHeld = await attemptWriter.record(this.#record(null), false);
    this.#held.facts = moveSlot(this.#held.facts);
    if (isHeld) fleet.noteClaim(instance_id);
    fleet.noteLeased(instance_id, -1);
    if (isHeld && this.#lost !== null) this.#release = leases.hold(this.#claim, this.#lost);
    if (!isHeld) this.#lost?.();
    return isHeld;
  }

  async end(end: AttemptEnd, isDeferrable: boolean): Promise<EndResult> {
    const { attemptWriter, fleet } = this.#ctx;
    const atMs = performance.now();
    if (this.#moved !== null) {
      if (!(await this.#moved)) return 'superseded';
      const result = await attemptWriter.settle(end, false, isDeferrable);
      fleet.noteRelease(this.#claim.instance_id);
      return result;
    }
    this.#leave();
    this.#held.facts = endCall(this.#held.facts);
    fleet.noteLeased(this.#claim.instance_id, -1);
    await attemptWriter.record(this.#record({ end, atMs }), isDeferrable);
    return 'settled';
  }

  #record(ended: LeasedCall['ended']): LeasedCall {
    return { holder: this.#ctx.fleet.holder, claim: this.#claim, beganAtMs: this.#beganAtMs, ended };
  }
}

/** All leases of a process. */
class Leases implements SlotLeases {
  readonly #ctx: SlotLeasesCtx;
  readonly #held = new Map<string, Lease>();
  /** Calls without a row. */
  readonly #open = new LiveList<LeasedSlot>();
  readonly #wantedAt = new Map<string, number>();
  readonly #asking = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(ctx: SlotLeasesCtx) {
    this.#ctx = ctx;
  }

  take(claim: Claim, { instance_id, max_concurrency }: InstanceSnapshot): SlotUse | null {
    if (this.#isClosed || !isUsable(this.#ctx, instance_id, max_concurrency)) return null;
    const held = this.#held.get(instance_id) ?? this.#begin(instance_id, max_concurrency);
    const at = now();
    const { slots, used } = held.facts;
    const isServed = used < slots && held.declared === max_concurrency && isInForce(held, at);
    held.facts = countCall(held.facts, at.ms, isServed);
    return isServed ? new LeasedSlot(this.#ctx, claim, { held, open: this.#open }) : null;
  }

  want(instance: InstanceSnapshot): void {
    const { db, fleet, logger } = this.#ctx;
    const { instance_id } = instance;
    const at = performance.now();
    const sinceMs = at - (this.#wantedAt.get(instance_id) ?? Number.NEGATIVE_INFINITY);
    if (!isLeasable(instance) || sinceMs < wantEveryMs) return;
    this.#wantedAt.set(instance_id, at);
    this.#schedule();
    requestSlots(db, instance_id, fleet.holder).catch((error: unknown) =>
      logger.warn({ err: error }, 'a call that waits for a slot could not say so'),
    );
  }

  giveUp(instanceId: string): void {
    const held = this.#held.get(instanceId);
    if (held !== undefined) held.facts = giveUp(held.facts, performance.now(), 'none');
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await Promise.all(this.#asking);
    for (const [id, held] of this.#held) if (held.facts.granted > 0) this.#ask(id, held, 0);
    await Promise.all(this.#asking);
  }

  #begin(instanceId: string, declared: number): Lease {
    const sentAt = { ms: Number.NEGATIVE_INFINITY, wallMs: 0 };
    const held: Lease = { facts: noTraffic, declared, sentAt, isAsking: false, moving: 0 };
    this.#held.set(instanceId, held);
    this.#schedule();
    return held;
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#tick(), tickMs).unref();
  }

  #tick(): void {
    this.#timer = null;
    const at = performance.now();
    if (this.#ctx.freezes.isCatchingUp(at)) {
      this.#schedule(); // answers that have arrived come first
      return;
    }
    for (const slot of this.#open.members()) if (slot.isOld(at) && slot.mayMove) slot.move();
    for (const [id, held] of this.#held) this.#look(id, held, at);
    for (const [id, wantedAt] of this.#wantedAt) if (at - wantedAt > wantEveryMs) this.#wantedAt.delete(id);
    if (this.#held.size > 0 || this.#wantedAt.size > 0) this.#schedule();
  }

  #look(id: string, held: Lease, at: number): void {
    if (held.isAsking || held.moving > 0) return;
    const { fleet } = this.#ctx;
    if (fleet.takeSlotRequest(id)) held.facts = giveUp(held.facts, at, 'half');
    const { granted, used } = held.facts;
    if (granted > 0 && !isInForce(held, now())) {
      // S4: the calls of an ended lease end, or get rows, before the next lease.
      if (used === 0) held.facts = { ...held.facts, granted: 0, slots: 0 };
      return;
    }
    if (isOver(held.facts, at)) this.#held.delete(id);
    if (granted === 0 && used === 0) held.declared = fleet.find(id)?.max_concurrency ?? 0;
    held.facts = { ...held.facts, isUsable: isUsable(this.#ctx, id, held.declared) };
    const asked = slotsToAsk(held.facts, at);
    if (asked !== null) this.#ask(id, held, asked);
  }

  #ask(id: string, held: Lease, slots: number): void {
    const sentAt = now();
    held.isAsking = true;
    held.facts = beginAsking(held.facts, slots, sentAt.ms);
    const inUse = Math.max(held.facts.slots, held.facts.used);
    const { db, fleet, logger } = this.#ctx;
    const { holder } = fleet;
    const task = leaseSlots(db, { instanceId: id, holder, slots, inUse, leaseMs })
      .then((granted) => {
        held.sentAt = sentAt;
        held.facts = endAsking(held.facts, slots, granted);
      })
      .catch((error: unknown) => logger.warn({ err: error }, 'slots could not be leased'))
      .finally(() => {
        held.isAsking = false;
        this.#asking.delete(task);
      });
    this.#asking.add(task);
  }
}

export function createSlotLeases(ctx: SlotLeasesCtx): SlotLeases {
  return new Leases(ctx);
}
