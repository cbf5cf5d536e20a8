/**
 * Prefetches claims for short paid calls that are alike and follow one another (a CallStream); free ones lease slots. A caller that calls
 * again within 50 ms is likely to call once more, so one statement makes several claims while no call waits for them,
 * and the next call waits for no database. Prefetched claims are durable where they reserve money, and are released
 * when no call takes them within 50 ms. None is made where it could delay another call: on an instance that is half
 * full, of a budget that is tight, or while several calls are in flight, whose claims share a statement anyway.
 *
 * The feature is separable: without this file, `is_prefetch` of a claim and the function is_tight, a lone caller waits
 * for one more statement and nothing else changes (`npm run bench:router`, p50 of one caller).
 */

import { ClaimSearch, seedOf } from '../../core/call/claim-search.ts';
import { isDeclaring } from '../../core/routing/call-bound.ts';
import type { InstanceSnapshot, RankedInstance } from '../../core/routing/types.ts';
import type { FleetPoller } from '../fleet/fleet-poller.ts';
import { newId } from '../ids.ts';
import { findInputErrors, type SchemaValidator } from '../registry/specs.ts';
import { searchOnce } from './claim.ts';
import { releaseClaim } from './reservation.ts';
import type { CallRequest, Claimed, RoutingCtx } from './routed-call.ts';

/** One call of a stream. */
interface CallOfStream {
  /** A prefetched claim whose instance accepts the input; null: claim now. */
  take(): Promise<Claimed | null>;
  /** The call has ended. */
  leave(): void;
}

interface StreamPorts {
  /** One claim for a call like this one, without waiting; null when there is none, or none to spare. */
  claim(like: CallRequest): Promise<Claimed | null>;
  giveBack(claimed: Claimed): void;
  isUsable(claimed: Claimed, request: CallRequest): Promise<boolean>;
}

/** All calls of the process. */
interface Traffic {
  /** In flight, in a stream or not. */
  open: number;
  isClosed: boolean;
}

/** With more calls in flight, claims share statements without a prefetch, which would only cost. */
const mostOpen = 4;
/** Made together, and rarely: a claim locks the budget until its commit, and what is settled meanwhile waits. */
const mostAhead = 8;
/** With this many left, more are made. */
const leastAhead = 2;
const idleMs = 50;
const pauseMs = 250;

/** Calls that are alike and follow one another, with the claims that were prefetched for the next of them. */
class CallStream {
  readonly #ports: StreamPorts;
  readonly #traffic: Traffic;
  readonly #ready: Claimed[] = [];
  readonly #making = new Set<Promise<void>>();
  #open = 0;
  #joined = 0;
  #lastAt = performance.now();
  /** A prefetch found nothing: the next one is not before this time. */
  #pausedUntil = 0;

  constructor(ports: StreamPorts, traffic: Traffic) {
    this.#ports = ports;
    this.#traffic = traffic;
  }

  join(request: CallRequest): CallOfStream {
    const isFirst = this.#joined++ === 0;
    this.#open += 1;
    const joinedAt = performance.now();
    this.#lastAt = joinedAt;
    const leave = (): void => {
      this.#open -= 1;
      this.#lastAt = performance.now();
      const isShort = this.#lastAt - joinedAt < idleMs;
      if (isShort && !isFirst) setImmediate(() => this.#refill(request)); // the answer goes first
    };
    return { take: () => this.#take(request), leave };
  }

  /** No call arrived for 50 ms. */
  get isIdle(): boolean {
    return this.#lastAt < performance.now() - idleMs;
  }

  /** No call and no claim is in flight. */
  get isQuiet(): boolean {
    return this.#open === 0 && this.#making.size === 0;
  }

  /** Releases the claims that no call has taken. */
  empty(): void {
    for (const claimed of this.#ready.splice(0)) this.#ports.giveBack(claimed);
  }

  /** Resolves when no claim is in flight; on a closed stream it is released by then. */
  async close(): Promise<void> {
    this.empty();
    await Promise.all(this.#making);
  }

  async #take(request: CallRequest): Promise<Claimed | null> {
    const claimed = this.#ready.shift() ?? null;
    if (claimed === null || (await this.#ports.isUsable(claimed, request))) return claimed;
    this.#ports.giveBack(claimed);
    return null;
  }

  #refill(like: CallRequest): void {
    const left = this.#ready.length + this.#making.size;
    const { open, isClosed } = this.#traffic;
    if (isClosed || open > mostOpen || left > leastAhead || performance.now() < this.#pausedUntil) return;
    for (let n = left; n < mostAhead; n++) {
      const task = this.#make(like).finally(() => this.#making.delete(task));
      this.#making.add(task);
    }
  }

  async #make(like: CallRequest): Promise<void> {
    const claimed = await this.#ports.claim(like).catch(() => null);
    if (claimed === null) this.#pausedUntil = performance.now() + pauseMs;
    else if (this.isIdle || this.#traffic.isClosed) this.#ports.giveBack(claimed);
    else this.#ready.push(claimed);
  }
}

interface ClaimPrefetch {
  readonly traffic: Traffic;
  /** Null for a call that joins no stream. */
  enter(request: CallRequest): CallOfStream | null;
  /** Makes no more claims, and releases unused ones. Resolves when none is in flight. */
  close(): Promise<void>;
}

interface ClaimPrefetchDependencies extends Omit<StreamPorts, 'isUsable'> {
  readonly fleet: Pick<FleetPoller, 'find' | 'of'>;
  readonly validator: SchemaValidator;
}

const mostStreams = 256;
const sweepMs = 25;

/** Not to be repeated under its key, with few calls in flight, and paid somewhere. */
function mayJoin(
  { isKeyNew, step, isAtMostOnce, route }: CallRequest,
  { open, isClosed }: Traffic,
  fleet: Pick<FleetPoller, 'of'>,
): boolean {
  const isOnly = isKeyNew && step === null && !isAtMostOnce;
  return isOnly && !isClosed && open <= mostOpen && fleet.of(route.capability).instances.some(isPaid);
}

export function createClaimPrefetch(dependencies: ClaimPrefetchDependencies): ClaimPrefetch {
  const streams = new Map<string, CallStream>();
  const traffic = { open: 0, isClosed: false };
  let timer: NodeJS.Timeout | null = null;
  const ports: StreamPorts = {
    ...dependencies,
    isUsable: (claimed, request) => isUsable(dependencies, claimed, request),
  };

  const sweep = (): void => {
    for (const [name, stream] of streams) {
      if (!stream.isIdle) continue;
      stream.empty();
      if (stream.isQuiet) streams.delete(name);
    }
    timer = streams.size === 0 ? null : setTimeout(sweep, sweepMs).unref();
  };

  const open = (name: string): CallStream => {
    const stream = new CallStream(ports, traffic);
    streams.set(name, stream);
    timer ??= setTimeout(sweep, sweepMs).unref();
    return stream;
  };

  return {
    traffic,
    enter: (request) => {
      if (!mayJoin(request, traffic, dependencies.fleet)) return null;
      const name = `${request.projectId} ${JSON.stringify([request.route, request.scopes])}`;
      const stream = streams.get(name) ?? (streams.size < mostStreams ? open(name) : null);
      return stream?.join(request) ?? null;
    },
    close: async () => {
      traffic.isClosed = true;
      if (timer !== null) clearTimeout(timer);
      await Promise.all([...streams.values()].map((stream) => stream.close()));
    },
  };
}

/** Checks a prefetched claim again, because its facts may have changed. */
async function isUsable(
  { fleet, validator }: Pick<ClaimPrefetchDependencies, 'fleet' | 'validator'>,
  { instance }: Claimed,
  request: CallRequest,
): Promise<boolean> {
  const now = fleet.find(instance.instance_id);
  if (now === undefined || now.state !== 'up' || now.breaker_until_ms !== null) return false;
  const { spec_digest } = now;
  if (spec_digest === null || spec_digest !== instance.spec_digest) return false;
  return findInputErrors(await validator.of(spec_digest), request).length === 0;
}

function isPaid({ cost_type }: Pick<InstanceSnapshot, 'cost_type'>): boolean {
  return cost_type !== 'free';
}

/** Paid, up, its breaker closed, less than half taken, and with a reservation that does not depend on the next input. */
function isSpare({ tier, instance }: RankedInstance): boolean {
  return (
    isPaid(instance) &&
    tier <= 1 &&
    2 * (instance.held + 1) <= instance.max_concurrency &&
    !isDeclaring(instance)
  );
}

/** Makes a claim for a call like this one, without waiting; null where it could delay another call. */
export async function prefetchClaim(ctx: RoutingCtx, like: CallRequest): Promise<Claimed | null> {
  const { fleet, waitQueue } = ctx;
  const target = { ...like, key: newId('call'), isPrefetch: true };
  const search = new ClaimSearch({ seed: seedOf(target.key), route: target.route, tried: [] });
  const waiting = waitQueue.count(target.route.capability);
  const { best } = search.choose(fleet, { waiting }).choice;
  if (best === null || !isSpare(best)) return null;
  const end = await searchOnce(ctx, { target, search }, waiting);
  if (end.kind !== 'claimed') return null;
  if (end.claim.cost_type !== 'free') return end;
  giveBack(ctx, end); // another instance has become the best one
  return null;
}

export function giveBack(ctx: RoutingCtx, { claim }: Claimed): void {
  void releaseClaim(ctx, claim, 'no call came for it').then(() => ctx.fleet.noteRelease(claim.instance_id));
}
