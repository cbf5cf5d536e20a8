/**
 * The slot, and the money for it, on the chosen instance: claimed before the request, then settled with the end of the
 * delivery, or withdrawn if the database did not answer it.
 */

import { contentOf, noUse, readUse } from '@capstan/core/call/call-facts';
import { runOf, scopesOf } from '@capstan/core/call/caller';
import type { Chosen, ClaimRefusal } from '@capstan/core/call/claim-search';
import type { AttemptEnding } from '@capstan/core/call/drive-call';
import { hasFailedCall, type Verdict } from '@capstan/core/call/judge';
import type { ClaimEnd, ClaimedCall } from '@capstan/core/call/types';
import { countWrongAnswers } from '@capstan/core/call/wrong-answer';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { StepState } from '@capstan/core/contracts/run-step';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import type { Shortage } from '@capstan/core/money/reservation';
import {
  enforcedTimeout,
  growingCall,
  meteredCall,
  reservationOf,
  usedUnits,
} from '@capstan/core/routing/estimate';
import { explainChoice } from '@capstan/core/routing/explain';
import { halfOpenTier } from '@capstan/core/routing/ranking';
import type { RouteRequest } from '@capstan/core/routing/types';
import type { Ctx } from '../../context.ts';
import type { AttemptEnd, BudgetShortage, Claim, EndResult } from '../../db/attempt/attempt.ts';
import { hasDurableEnd } from '../../parts/calls/attempt-writer.ts';
import type { Payer } from '../../parts/calls/holds.ts';
import type { CallRequest, Claimed } from '../../parts/calls/routed-call.ts';
import { decisionIdOf, newId } from '../../parts/ids.ts';

/** Releases a claim whose response was lost: it may have been made, may still be in flight, or may never be made. */
async function withdrawClaim(
  { attemptWriter }: Pick<Ctx, 'attemptWriter'>,
  claim: Claim,
  why: string,
): Promise<void> {
  await attemptWriter.withdraw(claim, toRelease(claim, why), hasDurableEnd(claim)).catch(() => undefined);
}

function toRelease({ attempt_id, token, step }: Claim, why: string): AttemptEnd {
  return {
    attempt_id,
    token,
    state: 'released',
    ambiguity: 'not_sent',
    counted: false,
    has_failed: false,
    settled_nano: 0n,
    certainty: 'exact',
    duration_ms: 0,
    asked_pause_ms: null,
    is_stopped: false,
    error: { code: 'unavailable', message: why },
    step_state: 'retrying',
    output: undefined,
    keeps: null,
    event_data: {},
    ...noUse,
    content: null,
    step,
  };
}

export type ClaimBestEnd = Exclude<ClaimEnd<Claimed>, { kind: 'none' }> | ClaimRefusal;

/** A half-open breaker lets one call through, although others could take it. */
export function isDueTrial({ request, instance }: Chosen): boolean {
  return request.trials?.has(instance.instance_id) === true;
}

/** @param chosen by this call */
export async function claimBest(ctx: Ctx, target: CallRequest, chosen: Chosen): Promise<ClaimBestEnd> {
  const { request, best, instance } = chosen;
  const timeoutMs = enforcedTimeout(instance, request);
  const { reserved: most, risk } = reservationOf(instance, request, best.costUsd);
  const lease = { token: ctx.fleet.holder, leaseMs: ctx.config.LEASE_MS };
  const growing = growingCall(instance, request);
  const { reserved, outlook } =
    growing === null ? { reserved: most, outlook: null } : ctx.holds.first(payerOf(target), growing);
  const claim = toClaim(target, chosen, { reserved, risk: growing === null ? risk : 0n, outlook, ...lease });
  const isTrial = best.tier === halfOpenTier || isDueTrial(chosen);
  const first: Claimed = {
    kind: 'claimed',
    claim,
    instance,
    timeoutMs,
    residency: best.residency,
    decision: claim.decision,
    isTrial,
    reserved,
    risk: most + risk - reserved,
    growing,
    metered: growing ?? meteredCall(instance, request),
    units: (ended) => usedUnits(instance, request, ended),
    number: 1,
    counted: 0,
    slot:
      mayLease(target, claim, isTrial) && instance.answers_later == null
        ? ctx.slotLeases.take(claim, instance)
        : null,
  };
  if (first.slot === null) return claimSlot(ctx, target, first);
  noteServed(ctx, first);
  return first;
}

function noteServed({ residency: recorder }: Ctx, { residency, instance }: Claimed): void {
  if (residency !== undefined) recorder.noteServed(instance, residency.key);
}

function payerOf({ projectId, caller, route: { capability } }: CallRequest): Payer {
  return { project_id: projectId, capability, run_id: runOf(caller), scopes: scopesOf(caller) };
}

/** @param first as if the call had made no attempt before */
async function claimSlot(ctx: Ctx, target: CallRequest, first: Claimed): Promise<ClaimBestEnd> {
  const { claim, instance, reserved } = first;
  const takeBack = ctx.fleet.noteClaim(instance.instance_id);
  // A claim that follows unstored answers is sent with them, and steps end durably.
  const isDurable = reserved > 0n || target.isAtMostOnce || (target.batch?.stored ?? null) !== null;
  const result = await ctx.attemptWriter.claim(claim, isDurable).catch((error: unknown) => {
    takeBack();
    void withdrawClaim(ctx, claim, 'the claim was not answered'); // it may have been made nevertheless
    throw error;
  });
  if (result.outcome === 'claimed') {
    const { number, counted } = result;
    noteServed(ctx, first);
    return { ...first, number, counted };
  }
  takeBack();
  switch (result.outcome) {
    case 'answered':
      return { kind: 'answered', output: result.output };
    case 'over_budget':
      return { kind: 'over_budget', shortage: toShortage(result.output) };
    case 'failed_before': {
      const { counted, errors } = result.output;
      const wrong = countWrongAnswers(errors);
      return { kind: 'failed_before', failures: new Map(Object.entries(counted)), wrong };
    }
    default:
      return { kind: result.outcome };
  }
}

/** Free, without a run, and no caller reads its row: it is recorded behind its answer. */
function mayLease({ isAtMostOnce, keeps }: CallRequest, claim: Claim, isTrial: boolean): boolean {
  const isPlain = claim.is_first && claim.run_id === null && !isTrial;
  return (
    isPlain &&
    claim.cost_type === 'free' &&
    claim.reserved_nano === 0n &&
    !isAtMostOnce &&
    keeps === undefined
  );
}

/** Whether this call itself has made an attempt. */
function hasTried({ ruledOut }: RouteRequest): boolean {
  return [...ruledOut.values()].includes('already_tried');
}

interface FirstHold extends Pick<ClaimedCall, 'reserved' | 'risk'> {
  /** Null: it does not grow. */
  readonly outlook: Claim['outlook'];
}

/** Of the attempts of this process. */
interface ProcessLease {
  readonly token: string;
  readonly leaseMs: number;
}

function toClaim(
  target: CallRequest,
  { request, choice, best, instance, inputs }: Chosen,
  { reserved, risk, outlook, token, leaseMs }: FirstHold & ProcessLease,
): Claim {
  const attempt_id = newId('attempt');
  const decision = explainChoice(request, choice, { decision_id: decisionIdOf(attempt_id), chosen: true });
  return {
    attempt_id,
    token,
    key: target.key,
    is_first: target.isKeyNew && request.ruledOut.size === 0,
    begins_step: target.beginsStep === true && target.wrong === undefined && !hasTried(request),
    known_failures: listFailures(request),
    project_id: target.projectId,
    step: target.step,
    run_id: runOf(target.caller),
    scopes: scopesOf(target.caller),
    capability: request.capability,
    instance_id: instance.instance_id,
    must_be_idle: best.tier === 0,
    has_host: instance.host != null,
    cost_type: instance.cost_type,
    rate_usd: instance.rate_usd,
    lease_ms: leaseMs,
    reserved_nano: reserved,
    risk_nano: risk,
    outlook,
    decision: { ...decision, reserved_usd: fromNanoUsd(reserved) },
    inputs,
  };
}

function listFailures({ ruledOut, failedBefore }: RouteRequest): string[] {
  const known = new Set(failedBefore?.keys());
  for (const [id, why] of ruledOut) if (why === 'already_tried') known.add(id);
  return [...known];
}

function toShortage({ scope, run_id, budget, period, resets_at, ...nano }: BudgetShortage): Shortage {
  return {
    scope,
    runId: run_id,
    scoped: budget === null || period === null ? {} : { budget, period },
    limit: BigInt(nano.limit_nano),
    spent: BigInt(nano.spent_nano),
    reserved: BigInt(nano.reserved_nano),
    resetsAt: resets_at === null ? null : new Date(resets_at).toISOString(),
  };
}

// Writes the end of a delivery: result, cost, state of the step and event, in one statement.

interface SettledCall {
  readonly request: Pick<CallRequest, 'holdsStep' | 'keeps' | 'route' | 'input'>;
  readonly claimed: Claimed;
}

const stepStateOf: Record<Verdict['next'], StepState> = {
  succeeded: 'succeeded',
  failover: 'retrying',
  retry: 'retrying',
  again: 'retrying',
  failed: 'failed',
  unknown: 'unknown',
  cancelled: 'cancelled',
};

/** @returns whether the end was accepted; false: a later attempt owns the step, or the step has ended */
export async function settleCall(
  ctx: Ctx,
  { request, claimed }: SettledCall,
  ending: AttemptEnding,
): Promise<boolean> {
  const { verdict } = ending.delivery;
  const end = toAttemptEnd(ctx, { request, claimed }, ending);
  const isDeferrable = answersBeforeCommit(claimed.claim, verdict);
  if (verdict.trips) ctx.slotLeases.giveUp(claimed.instance.instance_id);
  const settling =
    claimed.slot?.end(end, isDeferrable) ?? writeEnd(ctx, claimed.claim, { end, isDeferrable: isDeferrable });
  const { logger } = ctx;
  settling.catch((error: unknown) =>
    logger.error({ err: error }, 'the end of a call was not stored; its lease expires'),
  );
  return isDeferrable || (await settling) === 'settled';
}

/** The slot of a claim is free when its end is written. */
async function writeEnd(
  { attemptWriter, fleet }: Ctx,
  claim: Claim,
  { end, isDeferrable }: { readonly end: AttemptEnd; readonly isDeferrable: boolean },
): Promise<EndResult> {
  const { instance_id } = claim;
  const isDurable = hasDurableEnd(claim) || end.keeps !== null;
  if (isDeferrable) fleet.noteLeaving(instance_id, 1);
  try {
    return await attemptWriter.settle(end, isDurable, isDeferrable);
  } finally {
    if (isDeferrable) fleet.noteLeaving(instance_id, -1);
    fleet.noteRelease(instance_id);
  }
}

function toAttemptEnd(
  { keptContents }: { readonly keptContents: Pick<Ctx['keptContents'], 'heldOf'> },
  { request, claimed }: SettledCall,
  { delivery, end }: AttemptEnding,
): AttemptEnd {
  const { outcome, verdict } = delivery;
  const { attempt_id, token, step } = claimed.claim;
  const kept = end === null ? null : (request.keeps?.(end) ?? null);
  const told = keptContents.heldOf(claimed);
  return {
    attempt_id,
    token,
    state: verdict.attemptState,
    ambiguity: verdict.ambiguity,
    counted: verdict.counted,
    has_failed: hasFailedCall(verdict),
    settled_nano: delivery.amount,
    certainty: delivery.certainty,
    duration_ms: delivery.durationMs,
    asked_pause_ms: outcome.kind === 'overloaded' ? outcome.retryAfterMs : null,
    is_stopped: delivery.isStopped,
    error: verdict.error,
    step_state: isHeldOpen(request.holdsStep, verdict) ? 'retrying' : stepStateOf[verdict.next],
    output: step !== null && outcome.kind === 'answered' ? outcome.body : kept?.answer,
    keeps: kept?.place ?? null,
    step,
    event_data: toEventData(claimed, delivery),
    ...readUse(request.route.capability, outcome),
    content: told === undefined ? null : contentOf(request.input, outcome, told.events),
  };
}

/** The end of an attempt that nothing waits for: its money, and what its row shows. */
export function toLateEnd(claimed: Claimed, delivery: AttemptEnding['delivery']): AttemptEnd {
  const { claim } = claimed;
  const request = { route: { capability: claim.capability }, input: {} } as SettledCall['request'];
  const nothingKept = { keptContents: { heldOf: () => undefined } };
  const end = toAttemptEnd(nothingKept, { request, claimed }, { delivery, end: null });
  const error = end.error && { ...end.error, message: 'the answer came after its call had ended' };
  return { ...end, output: undefined, error, event_data: { ...Object(end.event_data), error } };
}

function toEventData(
  { instance: { endpoint } }: Claimed,
  { verdict: { error }, durationMs, amount, isStopped }: AttemptEnding['delivery'],
): Json {
  const stopped: JsonObject = isStopped ? { stopped: 'budget' } : {};
  return { endpoint, cost_usd: fromNanoUsd(amount), duration_ms: durationMs, error, ...stopped };
}

const ends: ReadonlySet<Verdict['next']> = new Set(['failed', 'unknown', 'cancelled']);

/** Whether the step stays open after the call; a verdict that continues by itself always leaves it open. */
function isHeldOpen(holdsStep: CallRequest['holdsStep'], { next, error }: Verdict): boolean {
  return holdsStep !== undefined && error !== null && ends.has(next) && holdsStep(error.code);
}

/**
 * A direct call without an Idempotency-Key is answered before its end is written, because no answer is stored for it.
 * If the process dies in between, the lease ends the attempt, at the price of its whole reservation.
 */
function answersBeforeCommit({ step, is_first }: Claim, { next }: Verdict): boolean {
  return step === null && is_first && next === 'succeeded';
}
