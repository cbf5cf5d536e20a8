/** What it means for a call that no instance could be claimed. */
import type { Decision, Verdict } from '../contracts/decision.ts';
import type { ErrorCode } from '../contracts/errors.ts';
import type { Failure, Json } from '../contracts/primitives.ts';
import { describeFindings } from '../json/values.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import { describeFigures, type Shortage, toRefusal } from '../money/reservation.ts';
import { nameRefusing } from '../money/scoped-budget.ts';
import type { LineWish } from '../routing/call-line.ts';
import { slotsOf } from '../routing/estimate.ts';
import { explainChoice } from '../routing/explain.ts';
import type { Choice, InstanceSnapshot, RouteRequest } from '../routing/types.ts';
import type { SchemaError } from './claim-search.ts';
import { shortestWaitMs } from './retry.ts';

export interface NoClaim {
  readonly error: Failure & { readonly code: ErrorCode };
  /** A later attempt cannot succeed. */
  readonly isFinal: boolean;
  /** Every instance that could take the call has no free slot, so the call waits for one. */
  readonly isFull?: true;
  /** Of a call that a claim was looked for. */
  readonly wish?: LineWish;
  /** Delay before an attempt may succeed, ms. */
  readonly retryAfterMs: number;
}

/** The last choice of a search that ended without a claim, and the findings of the search. */
export interface LastChoice {
  readonly choice: Choice;
  /** The reason in one sentence. */
  readonly reason: string;
  readonly refusals: readonly SchemaError[];
  readonly shortage: Shortage | null;
  readonly nowMs: number;
  /** The time left for the call; null = enough. */
  readonly leftMs?: number | null | undefined;
}

function later(code: ErrorCode, message: string, retryAfterMs: number): NoClaim {
  return { error: { code, message }, isFinal: false, retryAfterMs };
}

function never(code: ErrorCode, message: string, details: object): NoClaim {
  return { error: { code, message, details: details as Json }, isFinal: true, retryAfterMs: shortestWaitMs };
}

export function explainNoClaim({ choice, reason, refusals, shortage, nowMs, leftMs }: LastChoice): NoClaim {
  const { best, verdicts, minimumUsd, reopensAtMs } = choice;
  if (best !== null || verdicts.has('lost_claim')) {
    return { ...later('overloaded', reason, shortestWaitMs), isFull: true };
  }
  if (!mayComeBack(choice)) {
    if (verdicts.has('input_invalid') && refusals.length > 0) return explainRefusals(refusals);
    if (verdicts.has('over_budget') && shortage !== null) return explainShortage(shortage, minimumUsd ?? 0);
    if (verdicts.has('no_time')) return never('step_timeout', reason, { left_ms: leftMs ?? null });
    if (verdicts.has('over_ceiling')) return never('ceiling_too_low', reason, { minimum_usd: minimumUsd });
  }
  const restMs = (reopensAtMs ?? nowMs) - nowMs;
  return later('no_instance', reason, Math.max(shortestWaitMs, restMs));
}

/** Explains a search that ended without a claim. @param id of the decision that records it */
export function explainMiss(
  id: string,
  { request, choice }: { readonly request: RouteRequest; readonly choice: Choice },
  { refusals, shortage }: Pick<LastChoice, 'refusals' | 'shortage'>,
): NoClaim & { readonly decision: Decision } {
  const decision = explainChoice(request, choice, { decision_id: id, chosen: false });
  const { reason } = decision;
  const { nowMs, leftMs = null } = request;
  return { decision, ...explainNoClaim({ choice, reason, refusals, shortage, nowMs, leftMs }) };
}

/** The longest time after which an outside caller is asked to come back. */
const longestInLineMs = 600_000;

/**
 * Estimated time in ms until a call is served behind the waiting ones, capped; 0 without a candidate. Used for outside
 * callers: a step waits in line itself.
 * @param waiting calls before it
 */
export function timeInLine({ best, shown }: Choice, waiting: number): number {
  if (best === null) return 0;
  const slots = shown.reduce((sum, { instance }) => sum + slotsOf(instance), 0);
  return Math.min((best.waitMs * (1 + waiting)) / slots, longestInLineMs);
}

/** What waiting does not change. */
const refusals: readonly Verdict[] = ['input_invalid', 'over_ceiling', 'over_budget', 'no_time'];

/** Whether a slot may become free, or an instance appear; a refused input or price stays refused. */
export function isWorthWaiting(choice: Choice, tried: ReadonlySet<string>): boolean {
  const { best, verdicts } = choice;
  if (best !== null || verdicts.has('lost_claim')) return true;
  const isRefused = refusals.some((verdict) => verdicts.has(verdict));
  return (!isRefused || mayComeBack(choice)) && tried.size === 0;
}

/**
 * Whether a resting instance could take the call once it is back: a free one, also a drained one, or a priced one that
 * was checked and accepted (an open breaker is the last reason that is given). It must not be known to refuse the
 * input.
 */
export function mayComeBack({ excluded }: Choice): boolean {
  const specOf = ({ name, version }: InstanceSnapshot): string => `${name} ${version}`;
  const refusing = excluded.filter(({ verdict }) => verdict === 'input_invalid');
  const refused = new Set(refusing.map(({ instance }) => instance.spec_digest));
  const refusedVersions = new Set(refusing.map(({ instance }) => specOf(instance)));
  // The spec of an instance that died early was never read; the spec of its version is assumed.
  const refuses = (instance: InstanceSnapshot): boolean =>
    instance.spec_digest === null ? refusedVersions.has(specOf(instance)) : refused.has(instance.spec_digest);
  const isAway = ({ state, rate_usd }: InstanceSnapshot): boolean =>
    rate_usd === 0 && (state === 'down' || state === 'draining');
  return excluded.some(
    ({ verdict, instance }) => (verdict === 'breaker_open' || isAway(instance)) && !refuses(instance),
  );
}

/** Names all findings: failures are compared by this text. */
function explainRefusals(refusals: readonly SchemaError[]): NoClaim {
  return never('input_invalid', describeMismatch(describeFindings(refusals)), { errors: refusals });
}

export function describeMismatch(findings: string): string {
  return `the input does not match the input schema: ${findings}`;
}

/** 429 when the call would fit if calls in flight settled at zero cost; else 402. */
function explainShortage(shortage: Shortage, minimumUsd: number): NoClaim {
  const refusal = toRefusal(shortage, minimumUsd);
  const message = `the budget of ${nameRefusing(refusal)} has no room for ${minimumUsd} USD${describeFigures(refusal)}`;
  if (fromNanoUsd(shortage.spent) + minimumUsd > fromNanoUsd(shortage.limit))
    return never('budget_exhausted', message, refusal);
  return {
    error: { code: 'budget_reserved', message, details: refusal as unknown as Json },
    isFinal: false,
    retryAfterMs: shortestWaitMs,
  };
}
