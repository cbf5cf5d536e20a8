/** The call of a step, with all its attempts: until it ends, has to wait, or its time is over. */

import {
  type Chosen,
  type ClaimRefusal,
  ClaimSearch,
  isRefusal,
  type NothingFound,
} from '../call/claim-search.ts';
import { type CallPorts, driveCall } from '../call/drive-call.ts';
import { hasFailedCall } from '../call/judge.ts';
import { explainMiss, isWorthWaiting } from '../call/no-claim.ts';
import { type CallOutcome, kindOfStatus, outputInvalid } from '../call/outcome.ts';
import { hasTimeFor, longestWaitMs, outOfTime } from '../call/retry.ts';
import type { CallEnd, ClaimEnd, ClaimedCall, RoutedCall } from '../call/types.ts';
import { addWrongAnswer, noWrongAnswers } from '../call/wrong-answer.ts';
import type { CancelSignal } from '../cancellation.ts';
import type { Failure, Json, JsonObject } from '../contracts/primitives.ts';
import type { CompiledStep } from '../definition/compile.ts';
import {
  capabilityOf,
  resolveStepSettings,
  routeOfStep,
  type StepSettings,
} from '../definition/step-settings.ts';
import { createCostOfInput } from '../money/cost-expressions.ts';
import { enforcedTimeout, freeSlots, reservationOf } from '../routing/estimate.ts';
import { explainChoice } from '../routing/explain.ts';
import type { RouteConstraints } from '../routing/types.ts';
import type { UnitEnd, UnitWaiting } from '../run/drive.ts';
import { toQueueTimeout, waitForCapabilityOf } from '../run/step-rules.ts';
import { isPaused, type LocalRun, pausedMsOf, type UnitRecord } from './local-run.ts';
import type { MockAnswer } from './mock-fleet.ts';
import { cancelledEnd, logEvent, moveUnit, wakeUnit } from './run-journal.ts';

export type CallExecution =
  | { readonly state: 'succeeded'; readonly output: Json }
  | Extract<UnitEnd, { readonly error: Failure }>
  | UnitWaiting;

interface UnitCall {
  readonly step: CompiledStep;
  readonly input: JsonObject;
  readonly stop: CancelSignal;
  /** Whether it may end in a wait for its next attempt; a ladder waits for that itself. */
  readonly mayWait: boolean;
}

export async function executeCall(
  run: LocalRun,
  unit: UnitRecord,
  { step, input, stop, mayWait }: UnitCall,
): Promise<CallExecution> {
  const { time } = run.world;
  const missing = findMissing(run, step, unit) ?? findOverdue(run, step, unit);
  if (missing !== null) return missing;
  const settings = resolveStepSettings(run.definition, step.definition);
  const ports = createMockCallPorts(run);
  const passedMs = (): number => time.now() - pausedMsOf(run); // the time of a step stops in a pause
  let endsAt = passedMs() + (unit.leftMs ?? settings.totalTimeoutMs);
  delete unit.leftMs;
  for (;;) {
    unit.rounds = (unit.rounds ?? 0) + 1;
    const remainingMs = Math.max(0, endsAt - passedMs());
    const { priority, budget } = run;
    const route = routeOfStep(step.definition, settings, {
      priority,
      ceilingUsd: budget.ceilingUsd(),
      remainingMs,
    });
    const { retry } = settings;
    const pace = { round: unit.rounds, retry, resendsWithinMs: remainingMs };
    const isHeld = async () => isPaused(run);
    const end = await driveCall(ports, { unit, input, route, signal: stop, isHeld, ...pace });
    if (end.kind !== 'retry') return toExecution(end);
    endsAt += end.waitedMs;
    const leftMs = endsAt - passedMs();
    if (end.isFull) return waitForSlot(run, unit, { route, settings, leftMs });
    const inStepMs = isPaused(run) ? 0 : end.delayMs;
    if (!hasTimeFor(inStepMs, leftMs)) {
      return { state: 'failed', error: outOfTime(end.error, settings.totalTimeoutMs) };
    }
    moveUnit(run, unit, { state: 'retrying', data: { error: { ...end.error } } });
    if (mayWait) return waitForAttempt(run, unit, { delayMs: end.delayMs, leftMs: leftMs - inStepMs });
    await time.sleep(end.delayMs, stop);
    if (stop.aborted) return cancelledEnd;
  }
}

/** Time for the step does not run in a pause, so its next attempt is a wait that the pause holds. */
function waitForAttempt(
  { world: { time } }: LocalRun,
  unit: UnitRecord,
  { delayMs, leftMs }: { readonly delayMs: number; readonly leftMs: number },
): UnitWaiting {
  unit.leftMs = leftMs;
  return { state: 'waiting', wait: { awaiting: 'retry', until: time.now() + delayMs, ref: null } };
}

interface FullRoute {
  readonly route: RouteConstraints;
  readonly settings: StepSettings;
  readonly leftMs: number;
}

function waitForSlot(run: LocalRun, unit: UnitRecord, { route, settings, leftMs }: FullRoute): UnitWaiting {
  const { time, fleet } = run.world;
  unit.leftMs = leftMs;
  delete unit.rounds;
  if (unit.queued === undefined) {
    const call = (): void => wakeUnit(run, unit);
    unit.queued = fleet.lines.enter({ route, runId: run.runId, queuedAtMs: time.now(), call });
  } else unit.queued.isCalled = false;
  const until = settings.queueTimeoutMs === null ? null : unit.queued.queuedAtMs + settings.queueTimeoutMs;
  return { state: 'waiting', wait: { awaiting: 'slot', until, ref: null } };
}

/** The failure of a unit whose `queue_timeout` is over. */
function findOverdue(
  run: LocalRun,
  { definition }: CompiledStep,
  { queued }: UnitRecord,
): CallExecution | null {
  if (queued === undefined || queued.isCalled) return null;
  const { fleet, time } = run.world;
  const { queue_timeout = run.definition.defaults?.queue_timeout } = definition;
  const { capability } = queued.route;
  const ahead = fleet.lines.before(queued);
  fleet.lines.leave(queued);
  const endpoints = fleet.of(capability).instances.map(({ endpoint }) => endpoint);
  const waited = { capability, waitedMs: time.now() - queued.queuedAtMs, ahead, endpoints };
  return { state: 'failed', error: toQueueTimeout(waited, queue_timeout ?? '') };
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
    settle: async ({ unit }, { instance, reserved, risk }, { delivery: { amount, counted, verdict } }) => {
      budget.settle(reserved + risk, amount);
      world.fleet.release(instance.instance_id);
      unit.costNano += amount;
      unit.counted = counted;
      unit.wrong = addWrongAnswer(unit.wrong ?? noWrongAnswers, verdict.error);
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
  const { route, signal, unit } = call;
  const beganAt = time.now();
  const deadline = beganAt + longestWaitMs;
  const search = new ClaimSearch({ seed, route, tried, costOf: createCostOfInput(call.input) });
  search.noteFailures(unit.failedOn);
  const mustStand = unit.queued?.isCalled !== true && fleet.lines.ahead(route) > 0; // N4
  for (;;) {
    search.forgetMoment();
    const end = mustStand
      ? { kind: 'none' as const, ...search.choose(fleet, { waiting: fleet.lines.ahead(route) }) }
      : searchInstance(run, call, search);
    if (end.kind === 'claimed') return { ...end, waitedMs: time.now() - beganAt };
    const isFull = end.choice.best !== null;
    const isHopeful = isWorthWaiting(end.choice, tried) && !isFull;
    if (!isHopeful || signal.aborted || time.now() >= deadline) {
      return { kind: 'none', ...explainMiss('', end, search), waitedMs: isFull ? time.now() - beganAt : 0 };
    }
    await fleet.waitForRelease(route.capability, deadline - time.now(), signal);
  }
}

/** One pass over the instances, without waiting. */
function searchInstance(run: LocalRun, call: MockedCall, search: ClaimSearch): ClaimedCall | NothingFound {
  const { fleet } = run.world;
  for (;;) {
    const chosen = search.next(fleet, { waiting: 0 });
    if (chosen.kind === 'none') return chosen;
    const faults = fleet.require(call.route.capability).findInputFaults(call.input);
    const errors = faults.map(({ pointer, message }) => ({ pointer, message }));
    if (errors.length > 0) {
      search.noteRefusal(chosen.instance.instance_id, errors);
      continue;
    }
    const taken = take(run, call, chosen);
    if (!isRefusal(taken)) return taken;
    search.learn(chosen, taken);
  }
}

/** Claims a slot; other calls may have taken it since the choice. */
function take(
  run: LocalRun,
  { unit }: MockedCall,
  { request, choice, best, instance }: Chosen,
): ClaimedCall | ClaimRefusal {
  const { world, budget } = run;
  const { held } = best.instance;
  const isFull = freeSlots(best.instance, held) === 0;
  if (isFull || (best.tier === 0 && held > 0)) return { kind: 'full' };
  const timeoutMs = enforcedTimeout(instance, request);
  const { reserved, risk } = reservationOf(instance, request, best.costUsd);
  const shortage = budget.reserve(reserved, risk);
  if (shortage !== null) return { kind: 'over_budget', shortage };
  world.fleet.take(instance.instance_id);
  if (unit.queued !== undefined) world.fleet.lines.leave(unit.queued);
  delete unit.queued;
  unit.attempts += 1;
  const data = { endpoint: instance.endpoint, attempt: unit.attempts };
  logEvent(run, { type: 'step.routed', unit, data });
  return {
    kind: 'claimed',
    instance,
    number: unit.attempts,
    counted: unit.counted,
    wrong: unit.wrong,
    timeoutMs,
    reserved,
    risk,
    decision: explainChoice(request, choice, { decision_id: '', chosen: true }),
  };
}

async function deliver(
  run: LocalRun,
  { call, claimed }: { readonly call: MockedCall; readonly claimed: ClaimedCall },
  signal: CancelSignal,
): Promise<CallOutcome> {
  const { fleet, time } = run.world;
  const { unit, input } = call;
  const { instance, timeoutMs } = claimed;
  const position = Number(instance.instance_id.split('#').at(-1));
  const mocked = fleet.require(call.route.capability);
  const answer = mocked.answer({ input, step_id: unit.id, instance: position });
  await time.sleep(Math.min(answer.delayMs, timeoutMs), signal);
  if (signal.aborted) return { kind: 'cancelled' };
  if (answer.delayMs > timeoutMs) return { kind: 'timeout', timeoutMs };
  if (answer.laterMs !== null) {
    const late = await waitForAnswer(
      run,
      { unit, laterMs: answer.laterMs, leftMs: timeoutMs - answer.delayMs },
      signal,
    );
    if (late !== null) return { kind: late, timeoutMs };
  }
  const outcome = toOutcome(answer);
  if (outcome.kind !== 'answered') return outcome;
  const faults = mocked.findOutputFaults(outcome.body);
  return faults.length === 0 ? outcome : outputInvalid(faults);
}

/** The instance has accepted the call. @returns why no answer comes; null: it has come */
async function waitForAnswer(
  run: LocalRun,
  { unit, laterMs, leftMs }: { readonly unit: UnitRecord; readonly laterMs: number; readonly leftMs: number },
  signal: CancelSignal,
): Promise<'cancelled' | 'timeout' | null> {
  moveUnit(run, unit, { state: 'waiting', data: { awaiting: 'callback' } });
  await run.world.time.sleep(Math.min(laterMs, leftMs), signal);
  if (signal.aborted) return 'cancelled';
  unit.state = 'running';
  if (laterMs >= leftMs) return 'timeout';
  logEvent(run, { type: 'step.answered', unit });
  return null;
}

function toOutcome(answer: MockAnswer): CallOutcome {
  switch (answer.kind) {
    case 'output':
      // The answer travels as {ok, output}, so it may be any JSON.
      return { kind: 'answered', body: answer.output as JsonObject };
    case 'error': {
      const { status, message, retryAfterMs } = answer;
      const kind = kindOfStatus(status);
      return kind === 'overloaded' ? { kind, status, retryAfterMs } : { kind, status, message };
    }
    case 'garbage':
      return { kind: 'invalid', message: 'HTTP 200 with content type "text/html", not JSON' };
    case 'lost':
      return { kind: 'lost', message: 'the connection broke' };
    case 'refused':
      return { kind: 'not_sent', message: 'no connection' };
  }
}
