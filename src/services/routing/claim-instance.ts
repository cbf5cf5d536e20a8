/**
 * Finds an instance for a call and claims a slot on it.
 *
 * The best instance is waited for when it is full, and any instance when there is none, up to two seconds: a
 * batch call stays on the free queue, and the price of waiting is in the score. Callers of one capability wait in
 * line, so that a released slot wakes one of them and not all.
 */
import type { Decision } from '../../contracts/decision.ts';
import type { Json, JsonObject } from '../../contracts/primitives.ts';
import type { CancelSignal } from '../../core/cancellation.ts';
import { explainChoice } from '../../core/routing/explain.ts';
import { toInputs } from '../../core/routing/replay.ts';
import { halfOpenTier } from '../../core/routing/tier.ts';
import type { Choice, InstanceSnapshot, RankedInstance } from '../../core/routing/types.ts';
import type { BudgetShortage, Claim, StepKey } from '../../db/attempt/attempt.ts';
import { newId } from '../ids.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import type { AttemptWriter } from './attempt-writer.ts';
import type { Breakers } from './breakers.ts';
import { claimBest } from './claim-best.ts';
import {
  type ClaimSearch,
  createClaimSearch,
  type RouteConstraints,
  type SchemaError,
} from './claim-search.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';
import type { HalfOpenProbes } from './half-open-probes.ts';
import { mayComeBack } from './no-claim.ts';
import type { WaitQueue } from './wait-queue.ts';

export interface CallTarget {
  readonly projectId: string;
  /** The same for every attempt; sent as Idempotency-Key. */
  readonly key: string;
  /** Made for this call alone, so that no earlier attempt of it exists. */
  readonly isKeyNew: boolean;
  readonly step: StepKey | null;
  readonly route: RouteConstraints;
  readonly input: JsonObject;
  /** Sent at most once, so that the claim must survive a crash of the database. */
  readonly isAtMostOnce: boolean;
  /** How long it may wait for a slot, or for an instance to appear. */
  readonly maxWaitMs: number;
}

export interface Claimed {
  readonly kind: 'claimed';
  readonly claim: Claim;
  readonly instance: InstanceSnapshot;
  readonly number: number;
  readonly counted: number;
  readonly timeoutMs: number;
  /** The one call that a half-open breaker lets through. */
  readonly isTrial: boolean;
}

export type ClaimEnd =
  | Claimed
  | { readonly kind: 'answered'; readonly output: Json }
  | { readonly kind: 'closed' }
  /** Nothing could take it now; the decision says why. */
  | {
      readonly kind: 'none';
      readonly decision: Decision;
      readonly choice: Choice;
      readonly refusals: readonly SchemaError[];
      readonly shortage: BudgetShortage | null;
      readonly nowMs: number;
    };

export interface ClaimDependencies {
  readonly fleet: FleetPoller;
  readonly line: WaitQueue;
  readonly attemptWriter: AttemptWriter;
  readonly breakers: Pick<Breakers, 'reopen'>;
  readonly trials: HalfOpenProbes;
  readonly registry: Pick<RegistryService, 'vet'>;
  readonly validator: Pick<SchemaValidator, 'validateInput'>;
  readonly leaseMs: number;
}

/** @param tried instances that already failed this call; grows by the caller */
export async function claimInstance(
  dependencies: ClaimDependencies,
  target: CallTarget,
  tried: ReadonlySet<string>,
  signal: CancelSignal,
): Promise<ClaimEnd> {
  const { fleet, line } = dependencies;
  const { capability } = target.route;
  const deadline = performance.now() + target.maxWaitMs;
  const search = createClaimSearch(target.key, target.route, tried);
  const first = await tryClaim(dependencies, target, search, line.count(capability));
  if (!isWorthWaiting(first, tried)) return first;
  const waitAndTry = async (): Promise<ClaimEnd> => {
    let last: ClaimEnd = first;
    while (performance.now() < deadline && !signal.aborted) {
      search.forgetMoment();
      last = await tryClaim(dependencies, target, search, line.count(capability) - 1);
      if (!isWorthWaiting(last, tried)) return last;
      await fleet.waitForRelease(capability, deadline - performance.now(), signal);
    }
    return last;
  };
  return line.enter({ capability, priority: target.route.priority, deadline }, waitAndTry, first);
}

/** A slot may become free, or an instance appear; a refused input or price stays refused. */
function isWorthWaiting(end: ClaimEnd, tried: ReadonlySet<string>): boolean {
  if (end.kind !== 'none') return false;
  const { best, verdicts } = end.choice;
  if (best !== null || verdicts.has('lost_claim')) return true;
  const isRefused =
    verdicts.has('input_invalid') || verdicts.has('over_ceiling') || verdicts.has('over_budget');
  return (!isRefused || mayComeBack(end.choice)) && tried.size === 0;
}

/** One pass: the best one again and again, with what was learnt, until one is claimed or the best is full. */
async function tryClaim(
  dependencies: ClaimDependencies,
  target: CallTarget,
  search: ClaimSearch,
  waiting: number,
): Promise<ClaimEnd> {
  for (;;) {
    const { fleet, trials } = dependencies;
    const { request, choice } = search.choose(fleet, target.isAtMostOnce ? null : trials, waiting);
    const { best } = choice;
    if (best === null || best.isFull) {
      const decision = explainChoice(newId('decision'), request, choice, false);
      const { refusals, shortage } = search;
      return { kind: 'none', decision, choice, refusals, shortage, nowMs: request.nowMs };
    }
    // Snapshots change in place: what the choice was made from is written down before anything is waited for.
    const chosen = { request, choice, best, inputs: toInputs(choice, request, search.seed) };
    const instance = { ...best.instance };
    if (!(await isFitting(dependencies, best, target.input, search))) continue;
    const isDue = request.trials?.has(instance.instance_id) === true;
    const isTrial = isDue || best.tier === halfOpenTier;
    if (isDue) trials.take(instance.instance_id);
    const end = await claimBest(dependencies, target, { ...chosen, instance, isTrial }).catch(
      (error: unknown) => {
        if (isDue) trials.giveBack(instance.instance_id);
        throw error;
      },
    );
    if (isDue && end.kind !== 'claimed') trials.giveBack(instance.instance_id);
    switch (end.kind) {
      case 'full':
        // No longer idle: it is chosen again as what it is. Not even a slot free: somebody was faster.
        if (best.tier === 0) search.noteBusy(best.instance.instance_id);
        else search.noteLost(best.instance.instance_id);
        break;
      case 'gone':
        search.noteLost(best.instance.instance_id);
        await fleet.refresh();
        break;
      case 'over_budget':
        search.noteShortage(end.shortage);
        break;
      default:
        return end;
    }
  }
}

/**
 * Whether the instance's own spec is known and accepts the input. A spec that is not known yet is read now, and so
 * is the health of an instance whose breaker is half open; then the choice is made again with what was learnt.
 */
async function isFitting(
  { registry, validator, fleet, breakers }: ClaimDependencies,
  { instance, tier }: RankedInstance,
  input: JsonObject,
  search: ClaimSearch,
): Promise<boolean> {
  const { instance_id, name, version, spec_digest } = instance;
  const isDoubtful = spec_digest === null || tier === halfOpenTier;
  if (isDoubtful && search.noteVetting(instance_id)) {
    const isUsable = (await registry.vet(instance_id)) === 'usable';
    if (!isUsable && tier === halfOpenTier) await breakers.reopen(instance_id);
    if (isUsable) await fleet.refresh();
    else search.noteDown(instance_id);
    return false;
  }
  if (spec_digest === null) {
    search.noteDown(instance_id);
    return false;
  }
  const result = await validator.validateInput(name, version, spec_digest, input);
  if (!result.ok) search.noteRefusal(instance_id, result.errors);
  return result.ok;
}
