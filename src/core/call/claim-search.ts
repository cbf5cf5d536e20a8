/**
 * The search of one call for an instance, and what it has learnt of instances while it looks for one; each finding
 * rules out or changes candidates. One pass tries the best instance, and with what was learnt of it the next best,
 * until one is claimed or the best is full. The choice is the router's own wherever it is made; the ports say
 * whether an instance may take the input, and hold a slot and the money on it.
 */

import type { JsonObject } from '../../contracts/primitives.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import { headroomOf, type Shortage } from '../money/reservation.ts';
import { choose } from '../routing/choose.ts';
import { toInputs } from '../routing/replay.ts';
import type {
  Choice,
  InstanceSnapshot,
  RankedInstance,
  RouteConstraints,
  RouteRequest,
  RuledOut,
} from '../routing/types.ts';

export interface SchemaError {
  readonly pointer: string;
  readonly message: string;
}

/** The instances of one capability, now. */
export interface Fleet {
  readonly instances: readonly InstanceSnapshot[];
  /** Duration assumed for those without a call of their own. */
  readonly priorMs: number;
}

/** Where a choice reads. */
export interface FleetNow {
  of(capability: string): Fleet;
  /** The clock that breakers go by. */
  nowMs(): number;
}

/** What a choice goes by beside the fleet and what was learnt. */
interface ChoiceFacts {
  /** Half-open instances whose one call is due; absent: this call tries none. */
  readonly findDue?: (instances: readonly InstanceSnapshot[], nowMs: number) => ReadonlySet<string>;
  /** Other calls of the capability that wait in line. */
  readonly waiting: number;
}

export interface ClaimSearch {
  readonly seed: number;
  /** What the specs of instances say against the input. */
  readonly refusals: readonly SchemaError[];
  /** The tightest budget that refused a reservation. */
  readonly shortage: Shortage | null;
  /** The request as it stands, and what it chooses now. */
  choose(fleet: FleetNow, facts: ChoiceFacts): { request: RouteRequest; choice: Choice };
  /** Another router took the last slot, or the instance is no longer what it was. */
  noteLost(instanceId: string): void;
  /** It did not answer when it was asked who it is. */
  noteDown(instanceId: string): void;
  /** It seemed idle and is not. */
  noteBusy(instanceId: string): void;
  noteRefusal(instanceId: string, errors: readonly SchemaError[]): void;
  noteShortage(shortage: Shortage): void;
  /**
   * Earlier attempts of this call failed there; with how many of them are counted. They are asked again only after a
   * pause: not by a call that has just failed elsewhere.
   */
  noteFailures(failures: FailedBefore): void;
  /** True the first time. */
  noteVetting(instanceId: string): boolean;
  /** Slots may have become free since. */
  forgetMoment(): void;
}

/** Instances that failed a call in earlier attempts, and how many of those are counted. */
type FailedBefore = NonNullable<RouteRequest['failedBefore']>;

const none: ReadonlySet<string> = new Set();

/** The seed that decides ties between equally good instances for this key. */
export function seedOf(key: string): number {
  let seed = 0;
  for (let at = 0; at < key.length; at++) seed = (Math.imul(seed, 31) + key.charCodeAt(at)) | 0;
  return seed;
}

interface Learnt extends Pick<RouteRequest, 'ruledOut' | 'busy' | 'failedBefore'> {
  readonly seed: number;
  readonly route: RouteConstraints;
  readonly shortage: Shortage | null;
}

function chooseNow(
  fleet: FleetNow,
  { findDue, waiting }: ChoiceFacts,
  { seed, route, shortage, ruledOut, busy, failedBefore }: Learnt,
): { request: RouteRequest; choice: Choice } {
  const { instances, priorMs } = fleet.of(route.capability);
  const nowMs = fleet.nowMs();
  const headroomUsd = shortage === null ? null : fromNanoUsd(headroomOf(shortage));
  const trials = findDue?.(instances, nowMs) ?? none;
  const hidesHeadroom = shortage?.scope === 'global';
  const now = { headroomUsd, hidesHeadroom, ruledOut, busy, failedBefore, priorMs, nowMs, trials, waiting };
  const request = Object.assign(now, route);
  return { request, choice: choose(instances, request, seed) };
}

interface NewSearch {
  readonly seed: number;
  readonly route: RouteConstraints;
  /** Instances that are not asked again, because they have just failed this call. */
  readonly tried: Iterable<string>;
}

export function createClaimSearch({ seed, route, tried }: NewSearch): ClaimSearch {
  const ruledOut = new Map<string, RuledOut>([...tried].map((id) => [id, 'already_tried']));
  const hasPaused = ruledOut.size === 0;
  const failedBefore = new Map<string, number>();
  const busy = new Set<string>();
  const vetted = new Set<string>();
  const refusals: SchemaError[] = [];
  let shortage: Shortage | null = null;

  return {
    seed,
    refusals,
    get shortage() {
      return shortage;
    },
    choose: (fleet, facts) =>
      chooseNow(fleet, facts, { seed, route, shortage, ruledOut, busy, failedBefore }),
    noteLost: (instanceId) => ruledOut.set(instanceId, 'lost_claim'),
    noteDown: (instanceId) => ruledOut.set(instanceId, 'down'),
    noteBusy: (instanceId) => busy.add(instanceId),
    noteRefusal: (instanceId, errors) => {
      ruledOut.set(instanceId, 'input_invalid');
      refusals.push(...errors);
    },
    noteShortage: (seen) => {
      shortage = seen;
    },
    noteFailures: (failures) => {
      for (const [id, counted] of failures) {
        if (hasPaused) failedBefore.set(id, counted);
        else ruledOut.set(id, 'already_tried');
      }
    },
    noteVetting: (instanceId) => vetted.size < vetted.add(instanceId).size,
    forgetMoment: () => {
      for (const [id, reason] of ruledOut) if (reason === 'lost_claim') ruledOut.delete(id);
      busy.clear();
    },
  };
}

/** A choice, written down: snapshots of the fleet change in place while something is waited for. */
export interface Chosen {
  readonly request: RouteRequest;
  readonly choice: Choice;
  readonly best: RankedInstance;
  /** The best as it was when it was chosen. */
  readonly instance: InstanceSnapshot;
  /** What the choice was made from. */
  readonly inputs: JsonObject;
}

/** Why a chosen instance was not claimed; the search goes on with what this says. */
export type Missed =
  /** Another router was faster. */
  | { readonly kind: 'full' }
  /** It is no longer what it was. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'over_budget'; readonly shortage: Shortage }
  /** Nobody knew that earlier attempts of the call have failed. */
  | { readonly kind: 'failed_before'; readonly failures: FailedBefore };

interface SearchPorts<Found> {
  readonly fleet: FleetNow;
  /** Whether it may take the input; what speaks against it, or was learnt of it, is noted in the search. */
  fits(best: RankedInstance, search: ClaimSearch): Promise<boolean>;
  claim(chosen: Chosen): Promise<Found | Missed>;
  /** Reads the fleet again: it has changed. */
  refresh(): Promise<void>;
}

export interface NothingFound {
  readonly kind: 'none';
  readonly request: RouteRequest;
  readonly choice: Choice;
}

/**
 * One pass of a search: the best instance, and with what was learnt of it the next best, until one is claimed or the best
 * is full. The choice is the router's own wherever it is made; the ports say whether an instance may take the input, and
 * hold a slot and the money on it.
 */
export async function searchInstance<Found extends { readonly kind: string }>(
  ports: SearchPorts<Found>,
  search: ClaimSearch,
  facts: ChoiceFacts,
): Promise<Found | NothingFound> {
  for (;;) {
    const { request, choice } = search.choose(ports.fleet, facts);
    const { best } = choice;
    if (best === null || best.isFull) return { kind: 'none', request, choice };
    const instance = { ...best.instance };
    const chosen = { request, choice, best, instance, inputs: toInputs(choice, request, search.seed) };
    if (!(await ports.fits(best, search))) continue;
    const found = await ports.claim(chosen);
    if (!isMissed(found)) return found;
    await note({ search, refresh: ports.refresh }, best, found);
  }
}

const missed: ReadonlySet<string> = new Set<Missed['kind']>(['full', 'gone', 'over_budget', 'failed_before']);

function isMissed(found: { readonly kind: string }): found is Missed {
  return missed.has(found.kind);
}

async function note(
  { search, refresh }: { readonly search: ClaimSearch; readonly refresh: () => Promise<void> },
  { instance: { instance_id }, tier }: RankedInstance,
  found: Missed,
): Promise<void> {
  switch (found.kind) {
    case 'full':
      // No longer idle: it is chosen again as what it is. Not even a slot free: somebody was faster.
      if (tier === 0) search.noteBusy(instance_id);
      else search.noteLost(instance_id);
      return;
    case 'gone':
      search.noteLost(instance_id);
      return refresh();
    case 'over_budget':
      return search.noteShortage(found.shortage);
    case 'failed_before':
      search.noteFailures(found.failures);
  }
}
