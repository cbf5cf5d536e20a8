/**
 * A routed call: claim, `POST /exec`, settle; another instance where the retry table says so, at most three.
 * One database call before the request and one after it. What it cannot finish it hands back as `retry`, so that
 * the owner of the clock (Temporal for steps) decides when to come again.
 */
import type { CapabilityClient } from '../../clients/capability-http.ts';
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure, Json, JsonObject } from '../../contracts/primitives.ts';
import type { StepState } from '../../contracts/run.ts';
import { isExhausted, judgeOutcome, type Verdict } from '../../core/delivery/judge.ts';
import type { CallOutcome } from '../../core/delivery/outcome.ts';
import { backoffMs, type RetrySettings } from '../../core/delivery/retry-policy.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { settle } from '../../core/money/price.ts';
import { unwrapAnswer } from '../../core/routing/unwrap-answer.ts';
import { settleAttempt } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import type { InstanceFeed } from '../registry/instance-feed.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import type { SpeedRecorder } from '../registry/speed-recorder.ts';
import { type CallTarget, type ClaimEnd, type Claimed, claimInstance } from './claim-instance.ts';
import type { LeaseKeeper } from './lease-keeper.ts';
import { explainNoClaim } from './no-claim.ts';
import { createWaitingLine } from './waiting-line.ts';

export interface CallRequest extends CallTarget {
  readonly retry: RetrySettings;
  /** How often the owner has come with this call already; spaces out what is not counted. */
  readonly round: number;
  readonly signal: AbortSignal;
}

export interface SuccessfulAttempt {
  /** 1 when the first attempt succeeded. */
  readonly number: number;
  readonly endpoint: string;
  readonly cost_usd: number;
  readonly duration_ms: number;
}

export type CallEnd =
  | {
      readonly kind: 'succeeded';
      readonly output: Json;
      /** Null when an earlier attempt had answered already. */
      readonly attempt: SuccessfulAttempt | null;
    }
  | { readonly kind: 'failed' | 'unknown'; readonly error: Failure; readonly isRecorded: boolean }
  | { readonly kind: 'retry'; readonly error: Failure; readonly delayMs: number }
  | { readonly kind: 'cancelled' }
  /** A later attempt owns the step, or the step has ended. */
  | { readonly kind: 'closed' };

export interface CallDependencies {
  readonly db: Db;
  readonly client: CapabilityClient;
  readonly feed: InstanceFeed;
  readonly registry: Pick<RegistryService, 'vet' | 'reportRefused'>;
  readonly validator: SchemaValidator;
  readonly speed: SpeedRecorder;
  readonly leases: LeaseKeeper;
  readonly leaseMs: number;
}

const maxInstances = 3;
/** An instance may ask for a pause, but not for ever. */
const longestRetryAfterMs = 60_000;
/** For waits that no count bounds: an instance that comes back is noticed within seconds. */
const uncountedDelay: RetrySettings = { max: 0, initialMs: 500, factor: 1.6, maxDelayMs: 10_000 };

export type CallCapability = (request: CallRequest) => Promise<CallEnd>;

export const createCallCapability = (dependencies: CallDependencies): CallCapability => {
  const claiming = { ...dependencies, line: createWaitingLine() };
  return async (request) => {
    const tried = new Set<string>();
    let last: Delivery | null = null;
    while (tried.size < maxInstances) {
      const claimed = await claimInstance(claiming, request, tried, request.signal);
      if (claimed.kind !== 'claimed')
        return last === null ? endUnclaimed(request, claimed) : comeBack(request, last);
      tried.add(claimed.instance.instance_id);
      last = await deliver(dependencies, request, claimed);
      const end = await settleCall(dependencies, claimed, last);
      if (end !== null) return end;
      if (last.verdict.next === 'retry') break;
    }
    return comeBack(request, last as Delivery);
  };
};

/** One request to one instance, and what it means. */
interface Delivery {
  readonly outcome: CallOutcome;
  readonly verdict: Verdict;
  readonly durationMs: number;
  /** Counted failures of the key, this one included. */
  readonly counted: number;
}

const deliver = async (
  dependencies: CallDependencies,
  request: CallRequest,
  claimed: Claimed,
): Promise<Delivery> => {
  const facts = { countedBefore: claimed.counted, retryMax: request.retry.max };
  const { outcome, durationMs } = isExhausted(facts)
    ? { outcome: { kind: 'withheld' } as const, durationMs: 0 }
    : await callInstance(dependencies, request, claimed);
  const verdict = judgeOutcome(outcome, facts);
  return { outcome, verdict, durationMs, counted: claimed.counted + (verdict.counted ? 1 : 0) };
};

const uncountedDelayMs = ({ round }: CallRequest): number => backoffMs(uncountedDelay, round, Math.random());

/** No instance took the call. */
const endUnclaimed = (request: CallRequest, end: Exclude<ClaimEnd, Claimed>): CallEnd => {
  if (end.kind === 'closed') return end;
  if (end.kind === 'answered') return { kind: 'succeeded', output: end.output, attempt: null };
  if (request.signal.reason === 'cancelled') return { kind: 'cancelled' };
  const { code, message, details, isFinal } = explainNoClaim(end);
  const error: Failure = { code, message, details };
  return isFinal
    ? { kind: 'failed', error, isRecorded: false }
    : { kind: 'retry', error, delayMs: uncountedDelayMs(request) };
};

/** The last delivery failed in a way that time may cure. */
const comeBack = (request: CallRequest, { outcome, verdict, counted }: Delivery): CallEnd => {
  const delayMs = verdict.counted
    ? backoffMs(request.retry, Math.max(1, counted), Math.random())
    : uncountedDelayMs(request);
  const asked = outcome.kind === 'overloaded' ? (outcome.retryAfterMs ?? 0) : 0;
  return {
    kind: 'retry',
    error: verdict.error ?? {
      code: 'no_instance' satisfies ErrorCode,
      message: 'no instance is left to try',
    },
    delayMs: Math.max(delayMs, Math.min(asked, longestRetryAfterMs)),
  };
};

/** The request itself, with its lease held, and the answer checked against the instance's own schema. */
const callInstance = async (
  { client, leases, validator }: CallDependencies,
  request: CallRequest,
  { claim, instance, number, timeoutMs }: Claimed,
): Promise<{ outcome: CallOutcome; durationMs: number }> => {
  const abort = new AbortController();
  const onAbort = (): void => abort.abort(request.signal.reason);
  request.signal.addEventListener('abort', onAbort, { once: true });
  if (request.signal.aborted) onAbort();
  const release = leases.hold(claim, onAbort);
  const startedAt = performance.now();
  try {
    const outcome = await client.call({
      endpoint: instance.endpoint,
      input: request.input,
      idempotencyKey: request.key,
      attempt: number,
      timeoutMs,
      signal: abort.signal,
    });
    const durationMs = performance.now() - startedAt;
    return { outcome: await checkOutput(validator, instance, outcome), durationMs };
  } finally {
    release();
    request.signal.removeEventListener('abort', onAbort);
  }
};

const checkOutput = async (
  validator: SchemaValidator,
  { name, version, spec_digest }: Claimed['instance'],
  outcome: CallOutcome,
): Promise<CallOutcome> => {
  if (outcome.kind !== 'answered' || spec_digest === null) return outcome;
  const spec = await validator.spec(spec_digest);
  const unwrapped = unwrapAnswer(spec, outcome.body);
  if (!unwrapped.ok) return { kind: 'rejected', status: 200, message: unwrapped.error };
  const result = await validator.validateOutput(name, version, spec_digest, unwrapped.output);
  if (result.ok) return { kind: 'answered', body: unwrapped.output as JsonObject };
  const findings = result.errors.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  return { kind: 'output_invalid', message: `the answer does not match the output schema: ${findings}` };
};

const stepStateOf: Record<Verdict['next'], StepState> = {
  succeeded: 'succeeded',
  failover: 'retrying',
  retry: 'retrying',
  failed: 'failed',
  unknown: 'unknown',
  cancelled: 'cancelled',
};

/** Ends that say something about the instance; a refused input or a cancel does not. */
const instanceFaults: ReadonlySet<CallOutcome['kind']> = new Set([
  'failed',
  'invalid',
  'lost',
  'not_sent',
  'output_invalid',
  'timeout',
]);

/** Writes the end of the attempt and, with it, of the step. Null when the call goes on elsewhere or later. */
const settleCall = async (
  { db, feed, registry, speed }: CallDependencies,
  { claim, instance, number }: Claimed,
  { outcome, verdict, durationMs }: Delivery,
): Promise<CallEnd | null> => {
  const { amount, certainty } = settle(instance, verdict.settlement, durationMs, claim.reserved_nano);
  const cost_usd = fromNanoUsd(amount);
  const output = outcome.kind === 'answered' ? outcome.body : undefined;
  const settled = await settleAttempt(db, {
    attempt_id: claim.attempt_id,
    token: claim.token,
    state: verdict.attemptState,
    ambiguity: verdict.ambiguity,
    counted: verdict.counted,
    settled_nano: amount,
    certainty,
    duration_ms: durationMs,
    error: verdict.error,
    step_state: stepStateOf[verdict.next],
    output,
    event_data: { endpoint: instance.endpoint, cost_usd, duration_ms: durationMs, error: verdict.error },
  });
  feed.noteRelease(instance.instance_id);
  if (outcome.kind === 'not_sent' || outcome.kind === 'lost') {
    await registry.reportRefused(instance.instance_id);
  }
  if (instanceFaults.has(outcome.kind) || outcome.kind === 'answered') {
    speed.recordCall(instance.instance_id, { durationMs, ok: outcome.kind === 'answered' });
  }
  if (!settled) return { kind: 'closed' };
  switch (verdict.next) {
    case 'succeeded':
      return {
        kind: 'succeeded',
        output: output ?? null,
        attempt: { number, endpoint: instance.endpoint, cost_usd, duration_ms: durationMs },
      };
    case 'failed':
    case 'unknown':
      return { kind: verdict.next, error: verdict.error as Failure, isRecorded: true };
    case 'cancelled':
      return { kind: 'cancelled' };
    case 'failover':
    case 'retry':
      return null;
  }
};
