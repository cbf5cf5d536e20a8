/** What it means for a call that no instance took it. */
import type { Decision } from '../../contracts/decision.ts';
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure, Json } from '../../contracts/primitives.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import { describeFigures, type Shortage, toRefusal } from '../money/reservation.ts';
import { explainChoice } from '../routing/explain.ts';
import type { Choice, InstanceSnapshot, RouteRequest } from '../routing/types.ts';
import type { SchemaError } from './claim-search.ts';
import { shortestWaitMs, uncountedDelay } from './retry.ts';

export interface NoClaim {
  readonly error: Failure & { readonly code: ErrorCode };
  /** Time does not cure it. */
  readonly isFinal: boolean;
  /** When it may succeed. */
  readonly retryAfterMs: number;
}

/** The last choice of a search that ended without a claim, and what the search had learnt. */
export interface LastChoice {
  readonly choice: Choice;
  /** Why, in one sentence. */
  readonly reason: string;
  readonly refusals: readonly SchemaError[];
  readonly shortage: Shortage | null;
  readonly nowMs: number;
}

function later(code: ErrorCode, message: string, retryAfterMs: number): NoClaim {
  return { error: { code, message }, isFinal: false, retryAfterMs };
}

function never(code: ErrorCode, message: string, details: object): NoClaim {
  return { error: { code, message, details: details as Json }, isFinal: true, retryAfterMs: shortestWaitMs };
}

export function explainNoClaim({ choice, reason, refusals, shortage, nowMs }: LastChoice): NoClaim {
  const { best, verdicts, minimumUsd, reopensAtMs } = choice;
  if (best !== null || verdicts.has('lost_claim')) return later('overloaded', reason, shortestWaitMs);
  if (!mayComeBack(choice)) {
    if (verdicts.has('input_invalid') && refusals.length > 0) return explainRefusals(refusals);
    if (verdicts.has('over_budget') && shortage !== null) return explainShortage(shortage, minimumUsd ?? 0);
    if (verdicts.has('over_ceiling')) return never('ceiling_too_low', reason, { minimum_usd: minimumUsd });
  }
  const restMs = (reopensAtMs ?? nowMs) - nowMs;
  return later('no_instance', reason, Math.max(shortestWaitMs, restMs));
}

/** What a search that ended without a claim comes to. @param id of the decision that says so */
export function explainMiss(
  id: string,
  { request, choice }: { readonly request: RouteRequest; readonly choice: Choice },
  { refusals, shortage }: Pick<LastChoice, 'refusals' | 'shortage'>,
): NoClaim & { readonly decision: Decision } {
  const decision = explainChoice(id, request, choice, false);
  const { reason } = decision;
  return { decision, ...explainNoClaim({ choice, reason, refusals, shortage, nowMs: request.nowMs }) };
}

/**
 * About when a call is served that comes after so many others, ms, as far as it is told; 0 when the best has room. For a
 * caller outside: a step comes again earlier, so that no slot is idle meanwhile.
 */
export function timeInLine({ best, shown }: Choice, waiting: number): number {
  if (best === null || !best.isFull) return 0;
  const slots = shown.reduce((sum, { instance }) => sum + instance.max_concurrency, 0);
  return Math.min((best.waitMs * (1 + waiting)) / slots, uncountedDelay.maxDelayMs);
}

/** Whether a slot may become free, or an instance appear; a refused input or price stays refused. */
export function isWorthWaiting(choice: Choice, tried: ReadonlySet<string>): boolean {
  const { best, verdicts } = choice;
  if (best !== null || verdicts.has('lost_claim')) return true;
  const isRefused =
    verdicts.has('input_invalid') || verdicts.has('over_ceiling') || verdicts.has('over_budget');
  return (!isRefused || mayComeBack(choice)) && tried.size === 0;
}

/**
 * Whether an instance that rests could take the call when it is back: one that is free, or whose price was looked at
 * and found right (an open breaker is the last reason that is given), and that is not known to refuse the input.
 */
export function mayComeBack({ excluded }: Choice): boolean {
  const specOf = ({ name, version }: InstanceSnapshot): string => `${name} ${version}`;
  const refusing = excluded.filter(({ verdict }) => verdict === 'input_invalid');
  const refused = new Set(refusing.map(({ instance }) => instance.spec_digest));
  const refusedVersions = new Set(refusing.map(({ instance }) => specOf(instance)));
  // The spec of one that died young was never read: it is taken to be that of its version.
  const refuses = (instance: InstanceSnapshot): boolean =>
    instance.spec_digest === null ? refusedVersions.has(specOf(instance)) : refused.has(instance.spec_digest);
  return excluded.some(
    ({ verdict, instance }) =>
      (verdict === 'breaker_open' || (verdict === 'down' && instance.rate_usd === 0)) && !refuses(instance),
  );
}

function explainRefusals(refusals: readonly SchemaError[]): NoClaim {
  const findings = refusals.map(({ pointer, message }) => `${pointer || '/'} ${message}`);
  const message = `the input does not match the input schema: ${[...new Set(findings)].join('; ')}`;
  return never('input_invalid', message, { errors: refusals });
}

const nameOf = { run: 'the run', project: 'the project’s day', global: 'the day of all projects' };

/** 429 when it would fit once calls under way have settled for nothing; else 402. */
function explainShortage(shortage: Shortage, minimumUsd: number): NoClaim {
  const refusal = toRefusal(shortage, minimumUsd);
  const message = `the budget of ${nameOf[shortage.scope]} has no room for ${minimumUsd} USD${describeFigures(refusal)}`;
  if (fromNanoUsd(shortage.spent) + minimumUsd > fromNanoUsd(shortage.limit))
    return never('budget_exhausted', message, refusal);
  return {
    error: { code: 'budget_reserved', message, details: refusal as unknown as Json },
    isFinal: false,
    retryAfterMs: shortestWaitMs,
  };
}
