/**
 * Drives a routed call: claim, deliver, settle; then another instance if the retry table allows it. Its ports bring
 * database and HTTP, or mocks and virtual time. Invariants:
 * - C1: no instance is tried twice, and no more than `maxInstances`, except when a lost request is resent (C6) or a
 *   wrong answer is asked for again (C10).
 * - C2: all attempts together stay within the one ceiling and the one deadline of the call, which waits for slots move.
 * - C3: every claim is settled exactly once, also on cancellation, and is renewed until then.
 * - C4: an attempt is settled without being sent if earlier ones have used up the retries.
 * - C5: a call that cannot finish now is returned as `retry`, so that the owner of the clock schedules the next one; a
 *   call that found no instance costs nothing and leaves no trace.
 * - C6: a lost or timed-out request goes to another instance at once, where the owner allows it. It counts against
 *   `retry.max`; a pause follows only when no other instance is left.
 * - C7: a call that follows from an answer may be claimed while that answer is being stored, so that both share one
 *   statement. It is sent once the answer is accepted; otherwise its claim is released.
 * - C8: once a part of the result has been passed on, the call goes to no other instance: what was passed on and what
 *   another instance would answer are not one result.
 * - C9: while its owner holds it, a call that has begun tries no other instance: it is returned as `retry`.
 * - C10: a wrong answer is asked for again at once, with its fault, on another instance if there is one (R6), and at most
 *   `retry.invalidOutput` times over all rounds. It counts against nothing else. When the ceiling
 *   has no room for another attempt, the call ends with that fault.
 * - C11: a call that its instance has accepted to answer later is neither settled nor renewed here: its owner continues
 *   it, with the claim that it has, when the answer has come or its time is over.
 */

import { type CancelSignal, CancelSource, onCancel } from '../cancellation.ts';
import type { Decision } from '../contracts/decision.ts';
import type { Failure } from '../contracts/primitives.ts';
import { fromNanoUsd } from '../money/nano-usd.ts';
import { settle } from '../money/reservation.ts';
import { type DeliveryFacts, isExhausted, judgeOutcome } from './judge.ts';
import { type CallOutcome, reportOf } from './outcome.ts';
import { backoffMs, longerPause, maxInstances, timeOf, uncountedDelay } from './retry.ts';
import type { CallEnd, CallLater, ClaimEnd, ClaimedCall, Delivery, RoutedCall } from './types.ts';
import { addWrongAnswer, noWrongAnswers, type WrongAnswers } from './wrong-answer.ts';

export interface CallPorts<Request extends RoutedCall, Claimed extends ClaimedCall> {
  /** Finds an instance and reserves a slot and budget on it. @param tried instances that already failed this call */
  claim(target: Request, tried: ReadonlySet<string>): Promise<ClaimEnd<Claimed>>;
  /** Renews the claim; calls `lost` when that fails. @returns a function that stops renewing */
  hold(claimed: Claimed, lost: () => void): () => void;
  /** Sends the request once. */
  deliver(request: Request, claimed: Claimed, signal: CancelSignal): Promise<SentRequest | CallLater>;
  /** Stores the end of the attempt. @returns whether it was accepted; false: a later attempt owns the call */
  settle(request: Request, claimed: Claimed, ending: AttemptEnding): Promise<boolean>;
  /** Fragments of refusal messages that mark a temporary refusal. */
  readonly transientTexts: readonly string[];
  /** A monotonic clock. */
  nowMs(): number;
  /** From 0 to 1. */
  random(): number;
}

/** What became of a request. */
export interface SentRequest {
  readonly outcome: CallOutcome;
  readonly durationMs: number;
  /** Whether parts of the result have come. Default: none has. */
  readonly hasBegun?: boolean;
  /** What the call held at its end, if its hold has grown, nano-USD. Default: what it reserved. */
  readonly held?: bigint | undefined;
  /** The most that it can have cost by its end, nano-USD, as its parts or its time show. Default: what it held. */
  readonly most?: bigint | undefined;
  /** It was stopped, because its budgets have no more room, and its outcome is what it had done by then. Default: it was not. */
  readonly isStopped?: boolean;
}

/** How an attempt ended. */
export interface AttemptEnding {
  readonly delivery: Delivery;
  /** The end of the call when this is accepted; null when the call continues elsewhere or later. */
  readonly end: CallEnd | null;
}

interface MadeAttempt {
  readonly delivery: Delivery;
  readonly decision: Decision;
  readonly costUsd: number;
  /** Null when the call continues elsewhere or later. */
  readonly end: CallEnd | null;
}

/** Drives a call that is answered in place. */
export async function driveCall<Request extends RoutedCall, Claimed extends ClaimedCall>(
  ports: CallPorts<Request, Claimed>,
  request: Request,
): Promise<CallEnd> {
  const end = await driveLongCall(ports, request, null);
  if (end.kind === 'later')
    throw new Error('a call without an owner that continues it was left to its instance');
  return end;
}

/** @param adopted the claim of an earlier attempt that was left to its instance (C11); null: there is none */
export async function driveLongCall<Request extends RoutedCall, Claimed extends ClaimedCall>(
  ports: CallPorts<Request, Claimed>,
  request: Request,
  adopted: Claimed | null,
): Promise<CallEnd | CallLater> {
  let deadline = ports.nowMs() + (request.resendsWithinMs ?? request.route.timeoutMs);
  const tried = new Set<string>();
  let spentUsd = 0;
  let waitedMs = 0;
  let wrong = request.wrong ?? noWrongAnswers;
  let last: MadeAttempt | null = null;
  while (last === null || (goesOn(request, last, tried.size) && ports.nowMs() < deadline)) {
    if (last !== null && (await request.isHeld?.()) === true) break;
    const target: Request =
      last === null ? request : withWhatIsLeft(withWrong(request, wrong), spentUsd, deadline - ports.nowMs());
    const own: Claimed | null = last === null ? adopted : null;
    const claimed: ClaimEnd<Claimed> = own ?? (await ports.claim(target, tried));
    waitedMs += claimed.waitedMs ?? 0;
    deadline += claimed.waitedMs ?? 0;
    if (claimed.kind !== 'claimed') {
      if (last === null) return endUnclaimed(ports, request, { claimed, waitedMs });
      return endUnpaid(last, claimed) ?? comeBack(ports, request, { last, waitedMs });
    }
    wrong = claimed.wrong ?? wrong;
    const made: MadeAttempt | CallLater = await makeAttempt(ports, withWrong(request, wrong), claimed);
    if ('until' in made) return made;
    last = made;
    if (last.end !== null) return last.end;
    spentUsd += last.costUsd;
    if (last.delivery.verdict.next === 'again') wrong = addWrongAnswer(wrong, last.delivery.verdict.error);
    else tried.add(claimed.instance.instance_id);
  }
  return comeBack(ports, request, { last, waitedMs });
}

/** C10: the ceiling has no room for the same call again. */
function endUnpaid(
  { delivery: { verdict }, decision }: MadeAttempt,
  claimed: Exclude<ClaimEnd<ClaimedCall>, ClaimedCall>,
): CallEnd | null {
  const isUnpaid = claimed.kind === 'none' && claimed.error.code === 'ceiling_too_low';
  if (verdict.next !== 'again' || !isUnpaid) return null;
  return { kind: 'failed', error: verdict.error as Failure, isRecorded: false, decision };
}

function withWrong<Request extends RoutedCall>(request: Request, wrong: WrongAnswers): Request {
  return wrong.count === 0 ? request : { ...request, wrong };
}

/** C1, C6, C8, C10: whether the call tries another instance now. @param made attempts of this call */
function goesOn(
  { resendsWithinMs, hasPassedOn }: RoutedCall,
  { delivery: { verdict } }: MadeAttempt,
  made: number,
): boolean {
  if (hasPassedOn?.() === true) return false;
  if (verdict.next === 'again') return true;
  if (verdict.next === 'failover') return made < maxInstances;
  return resendsWithinMs !== undefined && verdict.ambiguity === 'ambiguous' && verdict.counted;
}

/** C2: the request with the remaining budget and time. */
function withWhatIsLeft<Request extends RoutedCall>(
  request: Request,
  spentUsd: number,
  leftMs: number,
): Request {
  const { ceilingUsd, runCeilingUsd = null } = request.route;
  const leftOf = (usd: number | null) => (usd === null ? null : Math.max(0, usd - spentUsd));
  const left = { ceilingUsd: leftOf(ceilingUsd), runCeilingUsd: leftOf(runCeilingUsd) };
  const time = timeOf(request.route.timeoutMs, leftMs);
  return { ...request, route: { ...request.route, ...left, ...time } };
}

/** C3: both halves end early when the call is cancelled or a later attempt has taken over. */
async function makeAttempt<Request extends RoutedCall, Claimed extends ClaimedCall>(
  ports: CallPorts<Request, Claimed>,
  request: Request,
  claimed: Claimed,
): Promise<MadeAttempt | CallLater> {
  const source = new CancelSource();
  const cancel = (): void => source.abort(request.signal.reason);
  const stopListening = onCancel(request.signal, cancel);
  const release = ports.hold(claimed, cancel);
  try {
    const delivery = await deliver(ports, { request, claimed }, source);
    if ('until' in delivery) return delivery;
    const costUsd = fromNanoUsd(delivery.amount);
    const settled = { ...claimed.decision, settled_usd: costUsd };
    const decision = delivery.isStopped ? { ...settled, stopped: 'budget' as const } : settled;
    const end = endOf(claimed, delivery, decision);
    if (end?.kind === 'succeeded') request.batch?.onAnswered(end);
    const isAccepted = await ports.settle(request, claimed, { delivery, end });
    return { delivery, decision, costUsd, end: isAccepted ? end : { kind: 'closed' } };
  } finally {
    release();
    stopListening();
  }
}

/** C4; also decides what the outcome means for the attempt, the budget and the call. */
async function deliver<Request extends RoutedCall, Claimed extends ClaimedCall>(
  ports: CallPorts<Request, Claimed>,
  { request, claimed }: { readonly request: Request; readonly claimed: Claimed },
  signal: CancelSignal,
): Promise<Delivery | CallLater> {
  const { transientTexts } = ports;
  const { retry, wrong = noWrongAnswers } = request;
  const before = {
    countedBefore: claimed.counted,
    retryMax: retry.max,
    wrongBefore: wrong.count,
    wrongMax: retry.invalidOutput,
    transientTexts,
  };
  const sent = isExhausted(before)
    ? notSent('withheld')
    : (await (request.batch?.stored ?? true))
      ? await ports.deliver(request, claimed, signal)
      : notSent('unsent');
  return 'until' in sent ? sent : judgeSent(claimed, sent, before);
}

type SettledFacts = Pick<ClaimedCall, 'instance' | 'reserved' | 'risk' | 'counted'>;

/** What became of a request, as the retry table and its price see it. */
export function judgeSent(claimed: SettledFacts, sent: SentRequest, before: DeliveryFacts): Delivery {
  const { outcome, durationMs, hasBegun, most } = sent;
  const verdict = judgeOutcome(outcome, { ...before, hasBegun });
  const { instance } = claimed;
  const reserved = sent.held ?? claimed.reserved;
  const risk = claimed.reserved + claimed.risk - reserved;
  const reports = instance.settle === 'reported';
  const facts = { durationMs, reserved, risk, most, reports, reportedUsd: reports ? costOf(outcome) : null };
  // On an instance that stops, the work of a cancelled call ends with its connection: its cost is known.
  const hasEnded = sent.isStopped === true || (outcome.kind === 'cancelled' && instance.stops === true);
  const settlement = hasEnded ? 'broken_off' : verdict.settlement;
  const { amount, certainty } = settle(instance, settlement, facts);
  const counted = claimed.counted + (verdict.counted ? 1 : 0);
  const isStopped = sent.isStopped === true || outcome.kind === 'exhausted';
  return { outcome, verdict, durationMs, counted, reserved, isStopped, amount, certainty };
}

function notSent(kind: 'withheld' | 'unsent'): SentRequest {
  return { outcome: { kind }, durationMs: 0 };
}

/** The cost that the instance reports. */
function costOf(outcome: CallOutcome): unknown {
  return outcome.kind === 'answered' ? outcome.body.cost_usd : reportOf(outcome)?.cost_usd;
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
    case 'again':
      return null;
  }
}

type Random = Pick<CallPorts<never, never>, 'random'>;
/** @see CallEnd */
type AfterWaits<Facts> = Facts & { readonly waitedMs: number };

/** No instance was claimed (C5). */
function endUnclaimed(
  { random }: Random,
  { round, signal }: RoutedCall,
  { claimed: end, waitedMs }: AfterWaits<{ readonly claimed: Exclude<ClaimEnd<ClaimedCall>, ClaimedCall> }>,
): CallEnd {
  if (end.kind === 'closed') return end;
  if (end.kind === 'answered') return { kind: 'succeeded', output: end.output, attempt: null };
  if (signal.reason === 'cancelled') return { kind: 'cancelled' };
  const { error, decision, isFull = false, wish } = end;
  if (end.isFinal) return { kind: 'failed', error, isRecorded: false, decision };
  const delayMs = Math.max(backoffMs(uncountedDelay, round, random()), end.retryAfterMs);
  return { kind: 'retry', error, decision, delayMs, isFull, wish, waitedMs };
}

/** The last delivery failed in a way that a later attempt may cure (C5). */
function comeBack(
  { random }: Random,
  { retry, round, signal }: RoutedCall,
  { last, waitedMs }: AfterWaits<{ readonly last: MadeAttempt }>,
): CallEnd {
  const { delivery, decision } = last;
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
    delayMs: longerPause(delayMs, asked),
    isFull: false,
    waitedMs,
  };
}
