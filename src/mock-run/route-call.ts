/**
 * A routed call of a local run: claim, answer of the mock, settlement; another instance where the retry table says so,
 * at most three. The tables are the router's; only claims, wires and clocks are missing.
 */
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { isExhausted, judgeOutcome, type Verdict } from '../core/call/judge.ts';
import type { CallOutcome } from '../core/call/outcome.ts';
import { backoffMs, type RetrySettings } from '../core/call/retry-policy.ts';
import type { CancelSignal } from '../core/cancellation.ts';
import { fromNanoUsd } from '../core/money/nano-usd.ts';
import { settle } from '../core/money/price.ts';
import { claimMock, type LocalClaim, type RouteWish } from './claim-mock.ts';
import type { LocalContext } from './local-context.ts';
import type { MockAnswer } from './mock-capability.ts';
import type { UnitRecord } from './run-journal.ts';

export interface LocalCall {
  readonly unit: UnitRecord;
  readonly wish: RouteWish;
  readonly input: JsonObject;
  readonly retry: RetrySettings;
  /** How often the step has come with this call. */
  readonly round: number;
  readonly stop: CancelSignal;
}

export type LocalCallEnd =
  | { readonly kind: 'succeeded'; readonly output: Json }
  | { readonly kind: 'failed' | 'unknown'; readonly error: Failure }
  | { readonly kind: 'retry'; readonly error: Failure; readonly delayMs: number }
  | { readonly kind: 'cancelled' };

const maxInstances = 3;
const longestRetryAfterMs = 60_000;
const uncountedDelay: RetrySettings = { max: 0, initialMs: 500, factor: 1.6, maxDelayMs: 10_000 };
/** Without jitter. */
const even = 0.5;

export async function routeCall(context: LocalContext, call: LocalCall): Promise<LocalCallEnd> {
  const { time } = context.world;
  const deadline = time.now() + call.wish.timeoutMs;
  const tried = new Set<string>();
  let spentUsd = 0;
  let last: Handled | null = null;
  while (tried.size < maxInstances && time.now() < deadline) {
    const wish = last === null ? call.wish : withWhatIsLeft(call.wish, spentUsd, deadline - time.now());
    const claim = await claimMock(context, wish, call.input, tried, call.stop);
    if (claim.kind === 'none') return last === null ? endUnclaimed(call, claim) : comeBack(call, last);
    tried.add(claim.instance.instance_id);
    last = await handle(context, call, claim);
    const end = endOf(last);
    if (end !== null) return end;
    if (last.verdict.next === 'retry') break;
    spentUsd += last.costUsd;
  }
  return comeBack(call, last as Handled);
}

function withWhatIsLeft(wish: RouteWish, spentUsd: number, timeoutMs: number): RouteWish {
  return {
    ...wish,
    timeoutMs: Math.max(1, timeoutMs),
    ceilingUsd: wish.ceilingUsd === null ? null : Math.max(0, wish.ceilingUsd - spentUsd),
  };
}

interface Handled {
  readonly outcome: CallOutcome;
  readonly verdict: Verdict;
  readonly counted: number;
  readonly costUsd: number;
}

type Claimed = Extract<LocalClaim, { kind: 'claimed' }>;

/** One call of one instance, and what it means. */
async function handle(context: LocalContext, call: LocalCall, claim: Claimed): Promise<Handled> {
  const { world, journal, budget } = context;
  const { unit, retry } = call;
  const { instance, reserved } = claim;
  const beganAt = world.time.now();
  unit.attempts += 1;
  const attempt = { endpoint: instance.endpoint, attempt: unit.attempts };
  journal.log('step.routed', unit, attempt);
  const facts = { countedBefore: unit.counted, retryMax: retry.max };
  const outcome = isExhausted(facts) ? ({ kind: 'withheld' } as const) : await deliver(context, call, claim);
  const verdict = judgeOutcome(outcome, facts);
  const durationMs = world.time.now() - beganAt;
  const { amount } = settle(instance, verdict.settlement, { durationMs, reserved, reportedUsd: null });
  budget.settle(reserved, amount);
  world.fleet.release(instance);
  unit.costNano += amount;
  if (verdict.counted) unit.counted += 1;
  return { outcome, verdict, counted: unit.counted, costUsd: fromNanoUsd(amount) };
}

async function deliver(
  { world }: LocalContext,
  { unit, wish, input, stop }: LocalCall,
  { instance, timeoutMs }: Claimed,
): Promise<CallOutcome> {
  const position = Number(instance.instance_id.split('#').at(-1));
  const answer = world.fleet.answer(wish.capability, { input, step_id: unit.id, instance: position });
  await world.time.sleep(Math.min(answer.delayMs, timeoutMs), stop);
  if (stop.aborted) return { kind: 'cancelled' };
  if (answer.delayMs > timeoutMs) return { kind: 'timeout', timeoutMs };
  const outcome = toOutcome(answer);
  if (outcome.kind !== 'answered') return outcome;
  const faults = world.fleet.checkOutput(wish.capability, outcome.body);
  if (faults.length === 0) return outcome;
  const findings = faults.map(({ pointer, message }) => `${pointer || '/'} ${message}`).join('; ');
  return { kind: 'output_invalid', message: `the answer does not match the output schema: ${findings}` };
}

function toOutcome(answer: MockAnswer): CallOutcome {
  switch (answer.kind) {
    case 'output':
      // It travels as {ok, output}, so it may be any JSON.
      return { kind: 'answered', body: answer.output as JsonObject };
    case 'error': {
      const { status, message } = answer;
      if (status === 429 || status === 503) return { kind: 'overloaded', status, retryAfterMs: null };
      return { kind: status >= 500 ? 'failed' : 'rejected', status, message };
    }
    case 'garbage':
      return { kind: 'invalid', message: 'HTTP 200 with content type "text/html", not JSON' };
    case 'lost':
      return { kind: 'lost', message: 'the connection broke' };
    case 'refused':
      return { kind: 'not_sent', message: 'no connection' };
  }
}

function endOf({ outcome, verdict }: Handled): LocalCallEnd | null {
  switch (verdict.next) {
    case 'succeeded':
      return { kind: 'succeeded', output: outcome.kind === 'answered' ? outcome.body : null };
    case 'failed':
    case 'unknown':
      return { kind: verdict.next, error: verdict.error as Failure };
    case 'cancelled':
      return { kind: 'cancelled' };
    case 'failover':
    case 'retry':
      return null;
  }
}

function endUnclaimed(
  { round, stop }: LocalCall,
  { error, isFinal }: Extract<LocalClaim, { kind: 'none' }>,
): LocalCallEnd {
  if (stop.aborted) return { kind: 'cancelled' };
  return isFinal
    ? { kind: 'failed', error }
    : { kind: 'retry', error, delayMs: backoffMs(uncountedDelay, round, even) };
}

function comeBack({ retry, round, stop }: LocalCall, { outcome, verdict, counted }: Handled): LocalCallEnd {
  if (stop.aborted) return { kind: 'cancelled' };
  const delayMs = verdict.counted
    ? backoffMs(retry, Math.max(1, counted), even)
    : backoffMs(uncountedDelay, round, even);
  const asked = outcome.kind === 'overloaded' ? (outcome.retryAfterMs ?? 0) : 0;
  const error = verdict.error ?? { code: 'no_instance', message: 'no instance is left to try' };
  return { kind: 'retry', error, delayMs: Math.max(delayMs, Math.min(asked, longestRetryAfterMs)) };
}
