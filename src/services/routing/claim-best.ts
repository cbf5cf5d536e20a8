/** Claims a slot, and the money for it, on the instance that was chosen. */
import type { Chosen, Missed } from '../../core/call/search-instance.ts';
import type { ClaimEnd } from '../../core/call/types.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Shortage } from '../../core/money/shortage.ts';
import { enforcedTimeout, reservationOf } from '../../core/routing/estimate.ts';
import { explainChoice } from '../../core/routing/explain.ts';
import type { RouteRequest } from '../../core/routing/types.ts';
import type { BudgetShortage, Claim } from '../../db/attempt/attempt.ts';
import { decisionIdOf, newId, newToken } from '../ids.ts';
import type { AttemptWriter } from './attempt-writer.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';
import { withdrawClaim } from './release-claim.ts';
import type { CallRequest, Claimed } from './routed-call.ts';

export interface ClaimWriter {
  readonly attemptWriter: Pick<AttemptWriter, 'claim' | 'withdraw'>;
  readonly fleet: Pick<FleetPoller, 'noteClaim'>;
  readonly leaseMs: number;
}

export type ClaimBestEnd = Exclude<ClaimEnd<Claimed>, { kind: 'none' }> | Missed;

/** @param chosen of this call @param isTrial the one call that a half-open breaker lets through */
export async function claimBest(
  { attemptWriter, fleet, leaseMs }: ClaimWriter,
  target: CallRequest,
  chosen: Chosen & { readonly isTrial: boolean },
): Promise<ClaimBestEnd> {
  const { instance, isTrial } = chosen;
  const timeoutMs = enforcedTimeout(instance, chosen.request);
  const reserved = reservationOf(instance, chosen.request, chosen.best.costUsd);
  const claim = toClaim(target, chosen, { reserved, leaseMs });
  const takeBack = fleet.noteClaim(instance.instance_id);
  // What follows from an answer goes out with it, and steps end durably.
  const isDurable = reserved > 0n || target.isAtMostOnce || target.mayBeSent !== undefined;
  const result = await attemptWriter.claim(claim, isDurable).catch((error: unknown) => {
    takeBack();
    void withdrawClaim(attemptWriter, claim, 'the claim was not answered'); // it may have been made all the same
    throw error;
  });
  if (result.outcome === 'claimed') {
    const { number, counted } = result;
    const { decision } = claim;
    return { kind: 'claimed', claim, instance, number, counted, timeoutMs, reserved, decision, isTrial };
  }
  takeBack();
  switch (result.outcome) {
    case 'answered':
      return { kind: 'answered', output: result.output };
    case 'over_budget':
      return { kind: 'over_budget', shortage: toShortage(result.output) };
    case 'failed_before':
      return { kind: 'failed_before', failures: new Map(Object.entries(result.output)) };
    default:
      return { kind: result.outcome };
  }
}

/** Whether this very call has made an attempt. */
function hasTried({ ruledOut }: RouteRequest): boolean {
  return [...ruledOut.values()].includes('already_tried');
}

function toClaim(
  target: CallRequest,
  { request, choice, best, instance, inputs }: Chosen,
  { reserved, leaseMs }: { readonly reserved: bigint; readonly leaseMs: number },
): Claim {
  const attempt_id = newId('attempt');
  const decision = explainChoice(decisionIdOf(attempt_id), request, choice, true);
  return {
    attempt_id,
    token: newToken(),
    key: target.key,
    is_first: target.isKeyNew && request.ruledOut.size === 0,
    begins_step: target.beginsStep === true && !hasTried(request),
    known_failures: listFailures(request),
    project_id: target.projectId,
    step: target.step,
    run_id: target.step?.run_id ?? target.runId ?? null,
    capability: request.capability,
    instance_id: instance.instance_id,
    must_be_idle: best.tier === 0,
    is_prefetch: target.isPrefetch === true,
    cost_type: instance.cost_type,
    rate_usd: instance.rate_usd,
    lease_ms: leaseMs,
    reserved_nano: reserved,
    decision: { ...decision, reserved_usd: fromNanoUsd(reserved) },
    inputs,
  };
}

function listFailures({ ruledOut, failedBefore }: RouteRequest): string[] {
  const known = new Set(failedBefore?.keys());
  for (const [id, why] of ruledOut) if (why === 'already_tried') known.add(id);
  return [...known];
}

function toShortage({ scope, run_id, resets_at, ...nano }: BudgetShortage): Shortage {
  return {
    scope,
    runId: run_id,
    limit: BigInt(nano.limit_nano),
    spent: BigInt(nano.spent_nano),
    reserved: BigInt(nano.reserved_nano),
    resetsAt: resets_at === null ? null : new Date(resets_at).toISOString(),
  };
}
