/**
 * A routed call, whoever makes it: claim, deliver, settle; another instance where the retry table says so. Its ports bring
 * database and HTTP, or mocks and virtual time. What holds:
 * - C1: no instance is tried twice, and no more than `maxInstances`, except where what was lost is sent again (C6).
 * - C2: all attempts together stay within the one ceiling and the one deadline that the call came with.
 * - C3: whatever is claimed is settled exactly once, also when it is cancelled; while it is held, the claim is renewed.
 * - C4: an attempt whose earlier ones have used up the retries is settled without being sent.
 * - C5: what cannot be finished now is handed back as `retry`, so that the owner of the clock decides when to come again;
 *   a call that waited in vain costs nothing and leaves nothing behind.
 * - C6: what was lost or not answered in time goes to another instance at once, where the owner allows it; `retry.max`
 *   counts it, and only when no other is left is there a pause.
 * - C7: what follows from an answer may be claimed while that is being stored, so that both go out in one statement. It is
 *   sent when the answer was accepted; otherwise its claim is given back.
 */

import type { Decision } from '../../contracts/decision.ts';
import type { Failure } from '../../contracts/primitives.ts';
import { type CancelSignal, CancelSource, onCancel } from '../cancellation.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import { settle } from '../money/reservation.ts';
import { isExhausted, judgeOutcome } from './judge.ts';
import type { CallOutcome } from './outcome.ts';
import { backoffMs, longestRetryAfterMs, maxInstances, uncountedDelay } from './retry.ts';
import type { CallEnd, ClaimEnd, ClaimedCall, Delivery, RoutedCall } from './types.ts';

export interface CallPorts<Request extends RoutedCall, Claimed extends ClaimedCall> {
  /** Finds an instance and holds a slot and the money on it. @param tried instances that already failed this call */
  claim(target: Request, tried: ReadonlySet<string>): Promise<ClaimEnd<Claimed>>;
  /** Keeps the claim; `lost` is called when that fails. @returns lets go of it */
  hold(claimed: Claimed, lost: () => void): () => void;
  /** Sends the request once. */
  deliver(
    request: Request,
    claimed: Claimed,
    signal: CancelSignal,
  ): Promise<{ readonly outcome: CallOutcome; readonly durationMs: number }>;
  /** Writes how the attempt ended. @returns whether it was accepted; false: a later attempt owns the call */
  settle(request: Request, claimed: Claimed, ending: AttemptEnding): Promise<boolean>;
  /** Parts of the messages of refusals that pass. */
  readonly transientTexts: readonly string[];
  /** A clock that does not jump. */
  nowMs(): number;
  /** 0 … 1 */
  random(): number;
}

/** How an attempt ended. */
export interface AttemptEnding {
  readonly delivery: Delivery;
  /** What the call ends with when this is accepted; null when it goes on elsewhere or later. */
  readonly end: CallEnd | null;
}

interface MadeAttempt {
  readonly delivery: Delivery;
  readonly decision: Decision;
  readonly costUsd: number;
  /** Null when the call goes on elsewhere or later. */
  readonly end: CallEnd | null;
}

export async function driveCall<Request extends RoutedCall, Claimed extends ClaimedCall>(
  ports: CallPorts<Request, Claimed>,
  request: Request,
): Promise<CallEnd> {
  const deadline = ports.nowMs() + (request.resendsWithinMs ?? request.route.timeoutMs);
  const tried = new Set<string>();
  let spentUsd = 0;
  let last: MadeAttempt | null = null;
  while (last === null || (goesOn(request, last, tried.size) && ports.nowMs() < deadline)) {
    const target = last === null ? request : withWhatIsLeft(request, spentUsd, deadline - ports.nowMs());
    const claimed = await ports.claim(target, tried);
    if (claimed.kind !== 'claimed') {
      return last === null ? endUnclaimed(ports, request, claimed) : comeBack(ports, request, last);
    }
    tried.add(claimed.instance.instance_id);
    last = await makeAttempt(ports, request, claimed);
    if (last.end !== null) return last.end;
    spentUsd += last.costUsd;
  }
  return comeBack(ports, request, last);
}

/** C1, C6: whether another instance is tried now. @param made attempts of this call */
function goesOn(
  { resendsWithinMs }: RoutedCall,
  { delivery: { verdict } }: MadeAttempt,
  made: number,
): boolean {
  if (verdict.next === 'failover') return made < maxInstances;
  return resendsWithinMs !== undefined && verdict.ambiguity === 'ambiguous' && verdict.counted;
}

/** C2. */
function withWhatIsLeft<Request extends RoutedCall>(
  request: Request,
  spentUsd: number,
  leftMs: number,
): Request {
  const { ceilingUsd, runCeilingUsd = null } = request.route;
  const leftOf = (usd: number | null) => (usd === null ? null : Math.max(0, usd - spentUsd));
  const left = { ceilingUsd: leftOf(ceilingUsd), runCeilingUsd: leftOf(runCeilingUsd) };
  const timeoutMs = Math.max(1, Math.min(request.route.timeoutMs, Math.ceil(leftMs)));
  return { ...request, route: { ...request.route, ...left, timeoutMs } };
}

/** C3: both halves end early when the call is cancelled or a later attempt has taken over. */
async function makeAttempt<Request extends RoutedCall, Claimed extends ClaimedCall>(
  ports: CallPorts<Request, Claimed>,
  request: Request,
  claimed: Claimed,
): Promise<MadeAttempt> {
  const source = new CancelSource();
  const cancel = (): void => source.abort(request.signal.reason);
  const stopListening = onCancel(request.signal, cancel);
  const release = ports.hold(claimed, cancel);
  try {
    const delivery = await deliver(ports, { request, claimed }, source);
    const costUsd = fromNanoUsd(delivery.amount);
    const decision = { ...claimed.decision, settled_usd: costUsd };
    const end = endOf(claimed, delivery, decision);
    if (end?.kind === 'succeeded') request.batch?.onAnswered(end);
    const isAccepted = await ports.settle(request, claimed, { delivery, end });
    return { delivery, decision, costUsd, end: isAccepted ? end : { kind: 'closed' } };
  } finally {
    release();
    stopListening();
  }
}

/** C4, and what the outcome means for the attempt, the money and the call. */
async function deliver<Request extends RoutedCall, Claimed extends ClaimedCall>(
  ports: CallPorts<Request, Claimed>,
  { request, claimed }: { readonly request: Request; readonly claimed: Claimed },
  signal: CancelSignal,
): Promise<Delivery> {
  const { transientTexts } = ports;
  const facts = { countedBefore: claimed.counted, retryMax: request.retry.max, transientTexts };
  const { outcome, durationMs } = isExhausted(facts)
    ? notSent('withheld')
    : (await (request.batch?.stored ?? true))
      ? await ports.deliver(request, claimed, signal)
      : notSent('unsent');
  const verdict = judgeOutcome(outcome, facts);
  const { instance, reserved } = claimed;
  const reports = instance.settle === 'reported' && outcome.kind === 'answered';
  const reportedUsd = reports ? (outcome.body.cost_usd ?? null) : null;
  return {
    outcome,
    verdict,
    durationMs,
    counted: claimed.counted + (verdict.counted ? 1 : 0),
    ...settle(instance, verdict.settlement, { durationMs, reserved, reportedUsd }),
  };
}

function notSent(kind: 'withheld' | 'unsent') {
  return { outcome: { kind }, durationMs: 0 } as const;
}

function endOf(
  { number, instance: { endpoint } }: ClaimedCall,
  { outcome, verdict, durationMs }: Delivery,
  decision: Decision & { readonly settled_usd: number },
): CallEnd | null {
  switch (verdict.next) {
    case 'succeeded': {
      const output = outcome.kind === 'answered' ? outcome.body : null;
      const attempt = { number, endpoint, cost_usd: decision.settled_usd, duration_ms: durationMs, decision };
      return { kind: 'succeeded', output, attempt };
    }
    case 'failed':
    case 'unknown':
      return { kind: verdict.next, error: verdict.error as Failure, isRecorded: true, decision };
    case 'cancelled':
      return { kind: 'cancelled' };
    case 'failover':
    case 'retry':
      return null;
  }
}

type Random = Pick<CallPorts<never, never>, 'random'>;

/** No instance took the call (C5). */
function endUnclaimed(
  { random }: Random,
  { round, signal }: RoutedCall,
  end: Exclude<ClaimEnd<ClaimedCall>, ClaimedCall>,
): CallEnd {
  if (end.kind === 'closed') return end;
  if (end.kind === 'answered') return { kind: 'succeeded', output: end.output, attempt: null };
  if (signal.reason === 'cancelled') return { kind: 'cancelled' };
  const { error, decision } = end;
  if (end.isFinal) return { kind: 'failed', error, isRecorded: false, decision };
  const delayMs = Math.max(backoffMs(uncountedDelay, round, random()), end.retryAfterMs);
  return { kind: 'retry', error, decision, delayMs };
}

/** The last delivery failed in a way that time may cure (C5). */
function comeBack(
  { random }: Random,
  { retry, round, signal }: RoutedCall,
  { delivery, decision }: MadeAttempt,
): CallEnd {
  const { outcome, verdict, counted } = delivery;
  if (signal.reason === 'cancelled') return { kind: 'cancelled' };
  const delayMs = verdict.counted
    ? backoffMs(retry, Math.max(1, counted), random())
    : backoffMs(uncountedDelay, round, random());
  const asked = (outcome.kind === 'overloaded' ? outcome.retryAfterMs : null) ?? 0;
  return {
    kind: 'retry',
    error: verdict.error as Failure,
    decision,
    delayMs: Math.max(delayMs, Math.min(asked, longestRetryAfterMs)),
  };
}
