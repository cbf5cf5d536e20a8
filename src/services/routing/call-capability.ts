/**
 * A routed call: claim, `POST /exec`, settle; another instance where the retry table says so, at most three.
 * One database call before the request and one after it. What it cannot finish it hands back as `retry`, so that
 * the owner of the clock (Temporal for steps) decides when to come again.
 */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure, Json } from '../../contracts/primitives.ts';
import { backoffMs, type RetrySettings } from '../../core/delivery/retry-policy.ts';
import type { InstanceFeed } from '../registry/instance-feed.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SchemaValidator } from '../registry/schema-validator.ts';
import {
  type CallTarget,
  type ClaimDependencies,
  type ClaimEnd,
  type Claimed,
  claimInstance,
} from './claim-instance.ts';
import { type DeliverDependencies, type Delivery, deliverCall } from './deliver-call.ts';
import type { LeaseKeeper } from './lease-keeper.ts';
import { explainNoClaim } from './no-claim.ts';
import { type SettleDependencies, settleCall } from './settle-call.ts';
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

export interface CallDependencies
  extends Omit<ClaimDependencies, 'line' | 'validator' | 'registry' | 'feed'>,
    DeliverDependencies,
    Omit<SettleDependencies, 'registry' | 'feed'> {
  readonly feed: InstanceFeed;
  readonly registry: Pick<RegistryService, 'vet' | 'reportRefused'>;
  readonly validator: SchemaValidator;
  readonly leases: LeaseKeeper;
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
      const handled = await handle(dependencies, request, claimed);
      if (handled.end !== null) return handled.end;
      last = handled.delivery;
      if (last.verdict.next === 'retry') break;
    }
    return comeBack(request, last as Delivery);
  };
};

/** Delivers and settles with the lease held; both end early when a later attempt has taken over. */
const handle = async (
  dependencies: CallDependencies,
  request: CallRequest,
  claimed: Claimed,
): Promise<{ delivery: Delivery; end: CallEnd | null }> => {
  const abort = new AbortController();
  const onAbort = (): void => abort.abort(request.signal.reason);
  request.signal.addEventListener('abort', onAbort, { once: true });
  if (request.signal.aborted) onAbort();
  const release = dependencies.leases.hold(claimed.claim, onAbort);
  try {
    const delivery = await deliverCall(dependencies, request, claimed, abort.signal);
    return { delivery, end: await settleCall(dependencies, claimed, delivery) };
  } finally {
    release();
    request.signal.removeEventListener('abort', onAbort);
  }
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
    delayMs: Math.max(delayMs, Math.min(asked, longestRetryAfterMs)),
  };
};
