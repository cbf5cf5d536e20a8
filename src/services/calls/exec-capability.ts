/**
 * One routed call without a pipeline, by the same path as a step's: up to three instances inside one ceiling and one
 * deadline. What a step would come back for later is an error here, with the time after which to ask again.
 */
import type { ExecAnswer, ExecRequest } from '../../contracts/decision.ts';
import { longestWaitMs } from '../../core/call/limits.ts';
import type { RetrySettings } from '../../core/call/retry-policy.ts';
import type { CallEnd } from '../../core/call/types.ts';
import type { CancelSignal } from '../../core/cancellation.ts';
import type { KeptAnswer } from '../../db/idempotency/idempotency-hold.ts';
import { AppError } from '../../errors/app-error.ts';
import { newId } from '../ids.ts';
import type { CallCapability } from '../routing/routed-call.ts';
import { takenOver, toExecError } from './exec-error.ts';

export interface ExecCall {
  readonly projectId: string;
  readonly capability: string;
  readonly request: ExecRequest;
  /** The key of its attempts; null makes one that nobody has used. */
  readonly key: string | null;
  /** What is stored under the caller's Idempotency-Key by the statement that settles the last attempt. */
  readonly keeps?: (answer: ExecAnswer | AppError) => KeptAnswer | null;
  readonly signal: CancelSignal;
}

/** What the call answers, or throws. */
function answerOf(end: CallEnd, request: ExecRequest): ExecAnswer | AppError {
  if (end.kind !== 'succeeded') return toExecError(end, request);
  if (end.attempt === null) return takenOver();
  return { ok: true, output: end.output as ExecAnswer['output'], routing: end.attempt.decision };
}

/** @throws AppError of the routing table */
export type ExecCapability = (call: ExecCall) => Promise<ExecAnswer>;

/** Whether to try again is the caller's choice, so earlier attempts of the same key never use up a count. */
const retry: RetrySettings = {
  max: Number.MAX_SAFE_INTEGER,
  initialMs: 1_000,
  factor: 2,
  maxDelayMs: 60_000,
};

export function createExecCapability(callCapability: CallCapability): ExecCapability {
  return async ({ projectId, capability, request, key, keeps, signal }) => {
    const end = await callCapability({
      projectId,
      step: null,
      isAtMostOnce: false,
      retry,
      round: 1,
      signal,
      key: key ?? newId('call'),
      isKeyNew: key === null,
      input: request.input,
      route: {
        capability,
        tags: request.tags,
        priority: request.priority,
        timeoutMs: request.timeout_ms,
        versionRange: request.version ?? null,
        ceilingUsd: request.budget_ceiling_usd ?? null,
      },
      maxWaitMs: Math.min(longestWaitMs, request.timeout_ms),
      ...(keeps === undefined ? {} : { keeps: (end) => keeps(answerOf(end, request)) }),
    });
    const answer = answerOf(end, request);
    if (answer instanceof AppError) throw answer;
    return answer;
  };
}
