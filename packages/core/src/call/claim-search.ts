/**
 * The search of one call for an instance, and what it has learnt about instances; each finding rules out or changes
 * candidates. One pass tries the best instance, then the next best with what it learnt, until it claims one or the best
 * is full. The router makes every choice; the ports check whether an instance may take the input, and reserve a slot
 * and the budget on it.
 */

import type { JsonObject } from '../contracts/primitives.ts';
import type { CostOfInput } from '../money/cost-expressions.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import { headroomOf, type Shortage } from '../money/reservation.ts';
import type { KeyOfInput } from '../residency/affinity-key.ts';
import { type LoadBook, ownKey, residencyOf } from '../residency/residency.ts';
import { boundsOf, type NativeCost } from '../routing/call-bound.ts';
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

import type { WrongAnswers } from './wrong-answer.ts';

export interface SchemaError {
  readonly pointer: string;
  readonly message: string;
}

/** The current instances of one capability. */
export interface Fleet {
  readonly instances: readonly InstanceSnapshot[];
  /** Duration assumed for instances without a call of their own. */
  readonly priorMs: number;
  /** Instances with a cost that depends on the input; absent: none. */
  readonly declaring?: readonly InstanceSnapshot[] | undefined;
  /** Some instance declares an affinity. Default: none does. */
  readonly hasAffinity?: boolean;
  /** What calls with keys have shown. Default: nothing. */
  readonly loads?: LoadBook | undefined;
}

/** The source of fleet data for a choice. */
export interface FleetNow {
  of(capability: string): Fleet;
  /** The clock that circuit breakers use. */
  nowMs(): number;
}

/** Inputs of a choice besides the fleet and the findings. */
interface ChoiceFacts {
  /** Finds half-open instances that are due for a trial call; absent: this call makes no trial. */
  readonly findDue?: (instances: readonly InstanceSnapshot[], nowMs: number) => ReadonlySet<string>;
  /** Other queued calls of the capability; of a call with a key, those with the same key. */
  readonly waiting: number;
  /** How long the call itself may wait for a slot. Default: as long as it takes. */
  readonly patienceMs?: number;
}

/** Instances that failed earlier attempts of a call, and the number of counted ones. */
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
  /** Null: the input is unknown. */
  readonly costOf: CostOfInput | null;
  readonly native: NativeCost | undefined;
  readonly projectId: string | null;
  /** Null: the input is unknown. */
  readonly keyOf: KeyOfInput | null;
}

/** Every field is written out, for one hidden class (bench/README.md, "Memory that a call keeps"). */
function boundsNow(
  known: Parameters<typeof boundsOf>[0],
  { route, ruledOut, costOf, native, projectId }: Learnt,
  nowMs: number,
): RouteRequest['bounds'] {
  return boundsOf(known, costOf, {
    projectId,
    nowMs,
    onBudget: route.onBudget,
    ceilingUsd: route.ceilingUsd,
    runCeilingUsd: route.runCeilingUsd,
    timeoutMs: route.timeoutMs,
    versionRange: route.versionRange,
    tags: route.tags,
    ruledOut,
    native,
  });
}

/** What a call with a key finds loaded; undefined: it has no key. */
export function findResidency(
  known: Fleet,
  caller: Pick<Learnt, 'keyOf' | 'projectId'> & { readonly route: Pick<RouteConstraints, 'affinity'> },
  nowMs: number,
): RouteRequest['residency'] {
  const { keyOf } = caller;
  if (keyOf === null) return undefined;
  if (caller.route.affinity != null) {
    const key = ownKey(caller.projectId, keyOf(caller.route.affinity));
    return residencyOf(known, () => key, nowMs);
  }
  if (known.hasAffinity !== true) return undefined;
  return residencyOf(
    known,
    (instance) => (instance.affinity == null ? null : keyOf(instance.affinity)),
    nowMs,
  );
}

function chooseNow(
  fleet: FleetNow,
  { findDue, waiting, patienceMs }: ChoiceFacts,
  learnt: Learnt,
): { request: RouteRequest; choice: Choice } {
  const { seed, route, shortage, ruledOut, busy, failedBefore } = learnt;
  const known = fleet.of(route.capability);
  const { instances, priorMs } = known;
  const nowMs = fleet.nowMs();
  const bounds = boundsNow(known, learnt, nowMs);
  const request: RouteRequest = {
    capability: route.capability,
    versionRange: route.versionRange,
    tags: route.tags,
    priority: route.priority,
    ceilingUsd: route.ceilingUsd,
    runCeilingUsd: route.runCeilingUsd ?? null,
    timeoutMs: route.timeoutMs,
    leftMs: route.leftMs,
    mayReceive: route.mayReceive,
    headroomUsd: shortage === null ? null : fromNanoUsd(headroomOf(shortage)),
    hidesHeadroom: shortage?.scope === 'global',
    nowMs,
    priorMs,
    ruledOut,
    busy,
    trials: findDue?.(instances, nowMs) ?? none,
    failedBefore,
    bounds,
    onBudget: route.onBudget,
    protocol: route.protocol,
    waiting,
    affinity: route.affinity,
    residency: findResidency(known, learnt, nowMs),
    patienceMs,
  };
  return { request, choice: choose(instances, request, seed) };
}

interface NewSearch {
  readonly seed: number;
  readonly route: RouteConstraints;
  /** Instances that have just failed this call and are not asked again. */
  readonly tried: Iterable<string>;
  /** Default: the input is unknown, so no cost depends on it. */
  readonly costOf?: CostOfInput | null;
  /** Default: the call has one form. */
  readonly native?: NativeCost | undefined;
  /** Default: a run outside of Capstan. */
  readonly projectId?: string;
  /** Default: the input is unknown, so only the route can give a key. */
  readonly keyOf?: KeyOfInput | null;
}

/** What one call has learnt about instances. A class: an object with an accessor has a hidden class of its own. */
export class ClaimSearch {
  readonly seed: number;
  /** Schema errors that the specs of instances found in the input. */
  readonly refusals: SchemaError[] = [];
  /** The tightest budget that refused a reservation. */
  shortage: Shortage | null = null;
  /** Wrong answers to earlier attempts; undefined: none are known. */
  wrong: WrongAnswers | undefined;
  readonly #route: RouteConstraints;
  readonly #costOf: CostOfInput | null;
  readonly #native: NativeCost | undefined;
  readonly #projectId: string | null;
  readonly #keyOf: KeyOfInput | null;
  readonly #ruledOut: Map<string, RuledOut>;
  readonly #hasPaused: boolean;
  readonly #failedBefore = new Map<string, number>();
  readonly #busy = new Map<string, number>();
  readonly #vetted = new Set<string>();

  constructor({ seed, route, tried, costOf = null, native, projectId, keyOf = null }: NewSearch) {
    this.seed = seed;
    this.#route = route;
    this.#costOf = costOf;
    this.#native = native;
    this.#projectId = projectId ?? null;
    this.#keyOf = keyOf;
    this.#ruledOut = new Map([...tried].map((id) => [id, 'already_tried']));
    this.#hasPaused = this.#ruledOut.size === 0;
  }

  /** The current request, and the choice for it. */
  choose(fleet: FleetNow, facts: ChoiceFacts): { request: RouteRequest; choice: Choice } {
    return chooseNow(fleet, facts, {
      seed: this.seed,
      route: this.#route,
      shortage: this.shortage,
      ruledOut: this.#ruledOut,
      busy: this.#busy,
      failedBefore: this.#failedBefore,
      costOf: this.#costOf,
      native: this.#native,
      projectId: this.#projectId,
      keyOf: this.#keyOf,
    });
  }

  /** The first key that the call has on any of the instances; null: it has none. */
  keyIn({ instances, hasAffinity }: Fleet): string | null {
    const { affinity = null } = this.#route;
    if (this.#keyOf === null) return null;
    if (affinity !== null) return ownKey(this.#projectId, this.#keyOf(affinity));
    if (hasAffinity !== true) return null;
    for (const instance of instances) {
      const key = instance.affinity == null ? null : this.#keyOf(instance.affinity);
      if (key !== null) return key;
    }
    return null;
  }

  /** The best instance now, to be checked and claimed; none: there is no instance, or the best is full. */
  next(fleet: FleetNow, facts: ChoiceFacts): Chosen | NothingFound {
    const { request, choice } = this.choose(fleet, facts);
    const { best } = choice;
    if (best === null || best.isFull) return { kind: 'none', request, choice };
    const instance = { ...best.instance };
    return { kind: 'chosen', request, choice, best, instance, inputs: toInputs(choice, request, this.seed) };
  }

  /** What a refused claim means for the next choice. */
  learn({ best: { instance, tier } }: Chosen, refusal: ClaimRefusal): void {
    const { instance_id } = instance;
    switch (refusal.kind) {
      case 'full':
        // It competes again, as a busy one or as a full one: to wait for it may still be better than what costs.
        this.noteHeld(instance_id, tier === 0 ? 1 : instance.max_concurrency);
        break;
      case 'gone':
        this.noteLost(instance_id);
        break;
      case 'over_budget':
        this.noteShortage(refusal.shortage);
        break;
      case 'failed_before':
        this.wrong = refusal.wrong;
        this.noteFailures(refusal.failures);
    }
  }

  /** The instance has changed. */
  noteLost(instanceId: string): void {
    this.#ruledOut.set(instanceId, 'lost_claim');
  }

  /** The instance did not answer the identity check. */
  noteDown(instanceId: string): void {
    this.#ruledOut.set(instanceId, 'down');
  }

  /** It has at least so many calls: another router was faster. */
  noteHeld(instanceId: string, held: number): void {
    this.#busy.set(instanceId, held);
  }

  noteRefusal(instanceId: string, errors: readonly SchemaError[]): void {
    this.#ruledOut.set(instanceId, 'input_invalid');
    this.refusals.push(...errors);
  }

  noteShortage(shortage: Shortage): void {
    this.shortage = shortage;
  }

  /**
   * Instances where earlier attempts of this call failed, with the number of counted ones. A call that has just failed
   * elsewhere does not try them; they are asked again only after a pause.
   */
  noteFailures(failures: FailedBefore): void {
    for (const [id, counted] of failures) {
      if (this.#hasPaused) this.#failedBefore.set(id, counted);
      else this.#ruledOut.set(id, 'already_tried');
    }
  }

  /** @returns true the first time */
  noteVetting(instanceId: string): boolean {
    return this.#vetted.size < this.#vetted.add(instanceId).size;
  }

  /** Forgets findings that time may have changed, such as full slots. */
  forgetMoment(): void {
    for (const [id, reason] of this.#ruledOut) if (reason === 'lost_claim') this.#ruledOut.delete(id);
    this.#busy.clear();
  }
}

/** A choice and its inputs. The instance is copied, because fleet snapshots change during a wait. */
export interface Chosen {
  readonly kind: 'chosen';
  readonly request: RouteRequest;
  readonly choice: Choice;
  readonly best: RankedInstance;
  /** The best instance at the time of the choice. */
  readonly instance: InstanceSnapshot;
  /** Inputs of the choice. */
  readonly inputs: JsonObject;
}

/** Why a chosen instance was not claimed. The search continues with this finding. */
export type ClaimRefusal =
  /** Another router took the slot first. */
  | { readonly kind: 'full' }
  /** The instance has changed. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'over_budget'; readonly shortage: Shortage }
  /** Earlier attempts of the call failed, which the choice did not know. */
  | { readonly kind: 'failed_before'; readonly failures: FailedBefore; readonly wrong?: WrongAnswers };

export interface NothingFound {
  readonly kind: 'none';
  readonly request: RouteRequest;
  readonly choice: Choice;
}

const refusals: ReadonlySet<string> = new Set<ClaimRefusal['kind']>([
  'full',
  'gone',
  'over_budget',
  'failed_before',
]);

export function isRefusal(end: { readonly kind: string }): end is ClaimRefusal {
  return refusals.has(end.kind);
}
