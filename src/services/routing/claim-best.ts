/** Claims a slot, and the money for it, on the instance that was chosen. */

import type { JsonObject } from '../../contracts/primitives.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { worstCase } from '../../core/money/price.ts';
import { enforcedTimeout } from '../../core/routing/estimate.ts';
import { explainChoice } from '../../core/routing/explain.ts';
import type { Choice, InstanceSnapshot, RankedInstance, RouteRequest } from '../../core/routing/types.ts';
import type { BudgetShortage, Claim } from '../../db/attempt/attempt.ts';
import { decisionIdOf, newId, newToken } from '../ids.ts';
import type { CallTarget, ClaimDependencies, ClaimEnd } from './claim-instance.ts';
import { releaseClaim } from './release-claim.ts';

type BestEnd =
  | Exclude<ClaimEnd, { kind: 'none' }>
  | { readonly kind: 'full' | 'gone' }
  | { readonly kind: 'over_budget'; readonly shortage: BudgetShortage };

interface Best {
  readonly request: RouteRequest;
  readonly choice: Choice;
  readonly best: RankedInstance;
  /** The best as it was when it was chosen. */
  readonly instance: InstanceSnapshot;
  /** What the choice was made from. */
  readonly inputs: JsonObject;
  readonly isTrial: boolean;
}

export async function claimBest(
  { attemptWriter, fleet, leaseMs }: Pick<ClaimDependencies, 'attemptWriter' | 'fleet' | 'leaseMs'>,
  target: CallTarget,
  { request, choice, best, instance, inputs, isTrial }: Best,
): Promise<BestEnd> {
  const timeoutMs = enforcedTimeout(instance, request);
  const reserved = worstCase(instance, timeoutMs);
  const attempt_id = newId('attempt');
  const decision = explainChoice(decisionIdOf(attempt_id), request, choice, true);
  const claim: Claim = {
    attempt_id,
    token: newToken(),
    key: target.key,
    is_first: target.isKeyNew && request.ruledOut.size === 0,
    project_id: target.projectId,
    step: target.step,
    capability: request.capability,
    instance_id: instance.instance_id,
    must_be_idle: best.tier === 0,
    cost_type: instance.cost_type,
    rate_usd: instance.rate_usd,
    lease_ms: leaseMs,
    reserved_nano: reserved,
    decision: { ...decision, reserved_usd: fromNanoUsd(reserved) },
    inputs,
  };
  fleet.noteClaim(instance.instance_id);
  const result = await attemptWriter
    .claim(claim, reserved > 0n || target.isAtMostOnce)
    .catch((error: unknown) => {
      fleet.noteRelease(instance.instance_id);
      void releaseClaim(attemptWriter, claim, 'the claim was not answered'); // it may have been made all the same
      throw error;
    });
  if (result.outcome === 'claimed') {
    const { number, counted } = result;
    return {
      kind: 'claimed',
      claim,
      instance,
      number,
      counted,
      timeoutMs,
      isTrial,
    };
  }
  fleet.noteRelease(instance.instance_id);
  switch (result.outcome) {
    case 'answered':
      return { kind: 'answered', output: result.output };
    case 'over_budget':
      return { kind: 'over_budget', shortage: result.output };
    default:
      return { kind: result.outcome };
  }
}
