/**
 * A routed call: claim, `POST /exec`, settle; another instance where the retry table says so, at most three.
 * One database call before the request and one after it. What it cannot finish it hands back as `retry`, so that
 * the owner of the clock (Temporal for steps) decides when to come again.
 */
import type { Decision } from '../../contracts/decision.ts';
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { Verdict } from '../../core/call/judge.ts';
import { backoffMs, type RetrySettings } from '../../core/call/retry-policy.ts';
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';
import type { Claim } from '../../db/attempt/attempt.ts';
import type { HoldKeeper } from '../delivery/lease-renewer.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import type { AttemptWriter } from './attempt-writer.ts';
import type { Breakers } from './breakers.ts';
import {
  type CallTarget,
  type ClaimDependencies,
  type ClaimEnd,
  type Claimed,
  claimInstance,
} from './claim-instance.ts';
import { type DeliverDependencies, type Delivery, deliverCall } from './deliver-call.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';
import { createHalfOpenProbes } from './half-open-probes.ts';
import { explainNoClaim } from './no-claim.ts';
import { type SettleDependencies, type SettledCall, settleCall } from './settle-call.ts';
import { createWaitQueue } from './wait-queue.ts';

export interface CallRequest extends CallTarget {
  readonly retry: RetrySettings;
  /** How often the owner has come with this call already; spaces out what is not counted. */
  readonly round: number;
  readonly signal: CancelSignal;
  /** Failures, and the cancel, after which its step stays open. Default: none. */
  readonly holdsStep?: (code: ErrorCode) => boolean;
}

export interface SuccessfulAttempt {
  /** 1 when the first attempt succeeded. */
  readonly number: number;
  readonly endpoint: string;
  readonly cost_usd: number;
  readonly duration_ms: number;
  readonly decision: Decision;
}

/** The decision of the last attempt, or why there was none. */
interface Explained {
  readonly decision: Decision | null;
}

export type CallEnd =
  | {
      readonly kind: 'succeeded';
      readonly output: Json;
      /** Null when an earlier attempt had answered already. */
      readonly attempt: SuccessfulAttempt | null;
    }
  | (Explained & {
      readonly kind: 'failed' | 'unknown';
      readonly error: Failure;
      readonly isRecorded: boolean;
    })
  /** Not done, and time may cure it. */
  | (Explained & { readonly kind: 'retry'; readonly error: Failure; readonly delayMs: number })
  | { readonly kind: 'cancelled' }
  /** A later attempt owns the step, or the step has ended. */
  | { readonly kind: 'closed' };

export interface CallDependencies
  extends Omit<
      ClaimDependencies,
      'line' | 'trials' | 'validator' | 'registry' | 'fleet' | 'attemptWriter' | 'breakers'
    >,
    DeliverDependencies,
    Omit<SettleDependencies, 'registry' | 'fleet' | 'attemptWriter' | 'breakers'> {
  readonly attemptWriter: AttemptWriter;
  readonly breakers: Breakers;
  readonly fleet: FleetPoller;
  readonly registry: Pick<RegistryService, 'vet' | 'reportRefused'>;
  readonly validator: SchemaValidator;
  readonly leases: HoldKeeper<Claim>;
}

const maxInstances = 3;
/** An instance may ask for a pause, but not for ever. */
const longestRetryAfterMs = 60_000;
/** For waits that no count bounds: an instance that comes back is noticed within seconds. */
const uncountedDelay: RetrySettings = { max: 0, initialMs: 500, factor: 1.6, maxDelayMs: 10_000 };

/** Makes one routed call. */
export type CallCapability = (request: CallRequest) => Promise<CallEnd>;

export function createCallCapability(dependencies: CallDependencies): CallCapability {
  const claiming = { ...dependencies, line: createWaitQueue(), trials: createHalfOpenProbes(dependencies) };
  return async (request) => {
    const deadline = performance.now() + request.route.timeoutMs;
    const tried = new Set<string>();
    let spentUsd = 0;
    let last: Handled | null = null;
    while (tried.size < maxInstances && performance.now() < deadline) {
      const target = last === null ? request : withWhatIsLeft(request, spentUsd, deadline);
      const claimed = await claimInstance(claiming, target, tried, request.signal);
      if (claimed.kind !== 'claimed')
        return last === null ? endUnclaimed(request, claimed) : comeBack(request, last);
      tried.add(claimed.instance.instance_id);
      last = await handle(dependencies, request, claimed);
      if (last.end !== null) return last.end;
      if (last.delivery.verdict.next === 'retry') break;
      spentUsd += last.costUsd;
    }
    return comeBack(request, last as Handled);
  };
}

/** Every attempt of one call happens inside one ceiling and one deadline. */
function withWhatIsLeft(request: CallRequest, spentUsd: number, deadline: number): CallRequest {
  const { ceilingUsd } = request.route;
  const timeoutMs = Math.max(1, Math.ceil(deadline - performance.now()));
  const left = ceilingUsd === null ? null : Math.max(0, ceilingUsd - spentUsd);
  return { ...request, route: { ...request.route, timeoutMs, ceilingUsd: left } };
}

interface Handled extends SettledCall {
  readonly delivery: Delivery;
  readonly decision: Decision;
}

/** Delivers and settles with the lease held; both end early when a later attempt has taken over. */
async function handle(
  dependencies: CallDependencies,
  request: CallRequest,
  claimed: Claimed,
): Promise<Handled> {
  const stop = new CancelSource();
  const stopNow = (): void => stop.abort(request.signal.reason);
  const stopListening = onCancel(request.signal, stopNow);
  const release = dependencies.leases.hold(claimed.claim, stopNow);
  try {
    const delivery = await deliverCall(dependencies, request, claimed, stop);
    const isHeld = isHeldOpen(request, delivery.verdict);
    const settled = await settleCall(dependencies, claimed, { ...delivery, isHeld });
    const decision = { ...claimed.claim.decision, settled_usd: settled.costUsd };
    return { ...settled, delivery, decision };
  } finally {
    release();
    stopListening();
  }
}

/** Whether the step stays open although the call is over; what goes on by itself never ends it. */
function isHeldOpen({ holdsStep }: CallRequest, { next, error }: Verdict): boolean {
  return holdsStep !== undefined && error !== null && ends.has(next) && holdsStep(error.code);
}

const ends: ReadonlySet<Verdict['next']> = new Set(['failed', 'unknown', 'cancelled']);

function uncountedDelayMs({ round }: CallRequest): number {
  return backoffMs(uncountedDelay, round, Math.random());
}

/** No instance took the call. */
function endUnclaimed(request: CallRequest, end: Exclude<ClaimEnd, Claimed>): CallEnd {
  if (end.kind === 'closed') return end;
  if (end.kind === 'answered') return { kind: 'succeeded', output: end.output, attempt: null };
  if (request.signal.reason === 'cancelled') return { kind: 'cancelled' };
  const { code, message, details, isFinal, retryAfterMs } = explainNoClaim(end);
  const error: Failure = { code, message, details };
  const { decision } = end;
  return isFinal
    ? { kind: 'failed', error, isRecorded: false, decision }
    : { kind: 'retry', error, decision, delayMs: Math.max(uncountedDelayMs(request), retryAfterMs) };
}

/** The last delivery failed in a way that time may cure. */
function comeBack(request: CallRequest, { delivery, decision }: Handled): CallEnd {
  const { outcome, verdict, counted } = delivery;
  if (request.signal.reason === 'cancelled') return { kind: 'cancelled' };
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
    decision,
    delayMs: Math.max(delayMs, Math.min(asked, longestRetryAfterMs)),
  };
}
