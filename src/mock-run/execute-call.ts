/** The call of a step, with all its attempts: until it ends, has to wait, or its time is over. */
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import { type Chosen, ClaimSearch, type Missed, searchInstance } from '../core/call/claim-search.ts';
import { type CallPorts, driveCall } from '../core/call/drive-call.ts';
import { hasFailedCall } from '../core/call/judge.ts';
import { explainMiss, isWorthWaiting } from '../core/call/no-claim.ts';
import { type CallOutcome, kindOfStatus, outputInvalid } from '../core/call/outcome.ts';
import { callTimeOf, hasTimeFor, longestWaitMs, outOfTime } from '../core/call/retry.ts';
import type { CallEnd, ClaimEnd, ClaimedCall, RoutedCall } from '../core/call/types.ts';
import type { CancelSignal } from '../core/cancellation.ts';
import type { CompiledStep } from '../core/definition/compile.ts';
import { capabilityOf, resolveStepSettings, routeOfStep } from '../core/definition/step-settings.ts';
import { createCostOfInput } from '../core/routing/call-bound.ts';
import { declaredNano, enforcedTimeout, reservationOf } from '../core/routing/estimate.ts';
import { explainChoice } from '../core/routing/explain.ts';
import type { RankedInstance } from '../core/routing/types.ts';
import type { UnitEnd, UnitWaiting } from '../core/run/drive.ts';
import { waitForCapabilityOf } from '../core/run/step-rules.ts';
import type { LocalRun, UnitRecord } from './local-run.ts';
import type { MockAnswer } from './mock-fleet.ts';
import { cancelledEnd, logEvent, moveUnit } from './run-journal.ts';

export type CallExecution =
  | { readonly state: 'succeeded'; readonly output: Json }
  | Extract<UnitEnd, { readonly error: Failure }>
  | UnitWaiting;

interface UnitCall {
  readonly step: CompiledStep;
  readonly input: JsonObject;
  readonly stop: CancelSignal;
}

export async function executeCall(
  run: LocalRun,
  unit: UnitRecord,
  { step, input, stop }: UnitCall,
): Promise<CallExecution> {
  const { time } = run.world;
  const missing = findMissing(run, step, unit);
  if (missing !== null) return missing;
  const settings = resolveStepSettings(run.definition, step.definition);
  const endsAt = time.now() + callTimeOf(settings.totalTimeoutMs);
  const ports = createMockCallPorts(run);
  for (let round = 1; ; round++) {
    const remainingMs = Math.max(0, endsAt - time.now());
    const end = await driveCall(ports, {
      unit,
      input,
      round,
      signal: stop,
      retry: settings.retry,
      resendsWithinMs: remainingMs,
      route: routeOfStep(step.definition, settings, {
        priority: run.priority,
        ceilingUsd: run.budget.ceilingUsd(),
        remainingMs,
      }),
    });
    if (end.kind !== 'retry') return toExecution(end);
    if (!hasTimeFor(end.delayMs, endsAt - time.now())) {
      return { state: 'failed', error: outOfTime(end.error, settings.totalTimeoutMs) };
    }
    moveUnit(run, unit, { state: 'retrying', data: { error: { ...end.error } } });
    await time.sleep(end.delayMs, stop);
    if (stop.aborted) return cancelledEnd;
  }
}

/** Without a registered instance, the step waits for its configured time; by default it does not wait. */
function findMissing(
  { world: { fleet, time } }: LocalRun,
  { definition }: CompiledStep,
  unit: UnitRecord,
): CallExecution | null {
  const capability = capabilityOf(definition);
  if (fleet.of(capability).instances.length > 0) return null;
  unit.missingSince ??= time.now();
  const { ms, failure } = waitForCapabilityOf(definition);
  const until = unit.missingSince + ms;
  return time.now() < until
    ? { state: 'waiting', wait: { awaiting: 'capability', until, ref: null } }
    : { state: 'failed', error: failure };
}

/** A call without budget waits for a raise. */
function toExecution(end: Exclude<CallEnd, { kind: 'retry' }>): CallExecution {
  switch (end.kind) {
    case 'succeeded':
      return { state: 'succeeded', output: end.output };
    case 'failed':
    case 'unknown':
      return end.error.code === 'budget_exhausted' && end.kind === 'failed'
        ? { state: 'waiting', wait: { awaiting: 'budget', until: null, ref: null } }
        : { state: end.kind, error: end.error };
    case 'cancelled':
      return cancelledEnd;
    case 'closed':
      throw new RangeError('nobody else takes over a call of a mock');
  }
}

interface MockedCall extends RoutedCall {
  readonly unit: UnitRecord;
  readonly input: JsonObject;
}

/** The random value that gives no jitter. */
export const even = 0.5;

/** The ports of a routed call against mocks: the run has its own instances, budget and reviews, and time is virtual. */
function createMockCallPorts(run: LocalRun): CallPorts<MockedCall, ClaimedCall> {
  const { world, budget } = run;
  return {
    claim: (call, tried) => claim(run, call, tried),
    hold: () => () => undefined,
    deliver: async (call, claimed, signal) => {
      const beganAt = world.time.now();
      const outcome = await deliver(run, { call, claimed }, signal);
      return { outcome, durationMs: world.time.now() - beganAt };
    },
    settle: async ({ unit }, { instance, reserved }, { delivery: { amount, counted, verdict } }) => {
      budget.settle(reserved, amount);
      world.fleet.release(instance.instance_id);
      unit.costNano += amount;
      unit.counted = counted;
      if (hasFailedCall(verdict)) noteFailure(unit, instance.instance_id, verdict.counted);
      return true;
    },
    transientTexts: [],
    nowMs: world.time.now,
    random: () => even,
  };
}

function noteFailure({ failedOn }: UnitRecord, instanceId: string, isCounted: boolean): void {
  failedOn.set(instanceId, (failedOn.get(instanceId) ?? 0) + (isCounted ? 1 : 0));
}

async function claim(
  run: LocalRun,
  call: MockedCall,
  tried: ReadonlySet<string>,
): Promise<ClaimEnd<ClaimedCall>> {
  const { time, fleet, seed } = run.world;
  const { route, signal } = call;
  const deadline = time.now() + longestWaitMs;
  const ports = {
    fleet,
    refresh: async () => undefined,
    fits: async ({ instance: { instance_id } }: RankedInstance) => {
      const faults = fleet.require(route.capability).findInputFaults(call.input);
      const errors = faults.map(({ pointer, message }) => ({ pointer, message }));
      if (errors.length > 0) search.noteRefusal(instance_id, errors);
      return errors.length === 0;
    },
    claim: async (chosen: Chosen) => take(run, call, chosen),
  };
  const search = new ClaimSearch({ seed, route, tried, costOf: createCostOfInput(call.input) });
  search.noteFailures(call.unit.failedOn);
  for (;;) {
    search.forgetMoment();
    const end = await searchInstance<ClaimedCall>(ports, search, { waiting: 0 });
    if (end.kind === 'claimed') return end;
    if (!isWorthWaiting(end.choice, tried) || signal.aborted || time.now() >= deadline) {
      return { kind: 'none', ...explainMiss('', end, search) };
    }
    await fleet.waitForRelease(route.capability, deadline - time.now(), signal);
  }
}

/** Claims a slot; other calls may have taken it since the choice. */
function take(
  run: LocalRun,
  { unit }: MockedCall,
  { request, choice, best, instance }: Chosen,
): ClaimedCall | Missed {
  const { world, budget } = run;
  const { held, max_concurrency } = best.instance;
  if (held >= max_concurrency || (best.tier === 0 && held > 0)) return { kind: 'full' };
  const timeoutMs = enforcedTimeout(instance, request);
  const reserved = reservationOf(instance, request, best.costUsd);
  const shortage = budget.reserve(reserved);
  if (shortage !== null) return { kind: 'over_budget', shortage };
  world.fleet.take(instance.instance_id);
  unit.attempts += 1;
  const data = { endpoint: instance.endpoint, attempt: unit.attempts };
  logEvent(run, { type: 'step.routed', unit, data });
  return {
    kind: 'claimed',
    instance,
    number: unit.attempts,
    counted: unit.counted,
    timeoutMs,
    reserved,
    declared: declaredNano(instance, request),
    decision: explainChoice('', request, choice, true),
  };
}

async function deliver(
  { world: { fleet, time } }: LocalRun,
  { call, claimed }: { readonly call: MockedCall; readonly claimed: ClaimedCall },
  signal: CancelSignal,
): Promise<CallOutcome> {
  const { unit, input } = call;
  const { instance, timeoutMs } = claimed;
  const position = Number(instance.instance_id.split('#').at(-1));
  const mocked = fleet.require(call.route.capability);
  const answer = mocked.answer({ input, step_id: unit.id, instance: position });
  await time.sleep(Math.min(answer.delayMs, timeoutMs), signal);
  if (signal.aborted) return { kind: 'cancelled' };
  if (answer.delayMs > timeoutMs) return { kind: 'timeout', timeoutMs };
  const outcome = toOutcome(answer);
  if (outcome.kind !== 'answered') return outcome;
  const faults = mocked.findOutputFaults(outcome.body);
  return faults.length === 0 ? outcome : outputInvalid(faults);
}

function toOutcome(answer: MockAnswer): CallOutcome {
  switch (answer.kind) {
    case 'output':
      // The answer travels as {ok, output}, so it may be any JSON.
      return { kind: 'answered', body: answer.output as JsonObject };
    case 'error': {
      const { status, message } = answer;
      const kind = kindOfStatus(status);
      return kind === 'overloaded' ? { kind, status, retryAfterMs: null } : { kind, status, message };
    }
    case 'garbage':
      return { kind: 'invalid', message: 'HTTP 200 with content type "text/html", not JSON' };
    case 'lost':
      return { kind: 'lost', message: 'the connection broke' };
    case 'refused':
      return { kind: 'not_sent', message: 'no connection' };
  }
}
