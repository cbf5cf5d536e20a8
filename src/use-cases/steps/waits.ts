/**
 * The waits of a step: for budget, for a capability, for a free slot, for a time, for the end of a pause.
 *
 * Time alone does not help a call that no instance took. Without budget, the step waits until the limit is raised or a
 * new window begins, and one review per budget is opened. Without an instance, it waits as long as its author allows. A
 * waiting step does not count against the parallelism of the run.
 *
 * A workflow's timer mirrors the database's clock, and fires too early when the other clock is ahead. With the same
 * `until`, the workflow would return at once, again and again; so the rest is waited for by a delayed retry
 * (waitForRest).
 */

import { setTimeout as pause } from 'node:timers/promises';
import { backoffMs, hasTimeFor, longerPause, uncountedDelay } from '@capstan/core/call/retry';
import { toAbortSignal } from '@capstan/core/cancellation';
import type { BudgetRefusal } from '@capstan/core/contracts/money';
import type { Failure } from '@capstan/core/contracts/primitives';
import { capabilityOf, resolveStepSettings, routeOfStep } from '@capstan/core/definition/step-settings';
import { parseDuration } from '@capstan/core/duration';
import { toNanoUsd } from '@capstan/core/money/nano-usd';
import { describeFigures } from '@capstan/core/money/reservation';
import { nameRefusing } from '@capstan/core/money/scoped-budget';
import {
  anySlot,
  type LineWish,
  lineOf,
  rankOf,
  routeOfLine,
  standAsideMs,
} from '@capstan/core/routing/call-line';
import { createRouteFilter, excludeByRoute } from '@capstan/core/routing/filter';
import { toQueueTimeout, waitForCapabilityOf } from '@capstan/core/run/step-rules';
import type { StepExecution, WaitingStep } from '@capstan/core/workflow-payloads';
import type { WorkerCtx } from '../../context.ts';
import {
  callKeyOf,
  isHeld,
  loseOpenAttempt,
  readLastFailure,
  type StepKey,
} from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { readUnixTime } from '../../db/escalation/escalation-transition.ts';
import { isRegistered } from '../../db/instance/capability-name.ts';
import { hasRoomFor } from '../../db/money/budget.ts';
import { readPause } from '../../db/run/run-control.ts';
import { queueCall, readQueuedCall } from '../../db/step/call-line.ts';
import { readStep, type StoredStep } from '../../db/step/step.ts';
import { answerStep, isUnderWay, keepWaiting } from '../../db/step/step-progress.ts';
import { budgetScopeOf, openReview } from '../reviews/opening.ts';
import type { StepUnit } from '../run-data/evaluation.ts';
import type { CallStop, StepControl, StepPause, StepRequest, StepWork } from './call.ts';
import { failStep, readEnd } from './step-end.ts';

type Waited = StepExecution | WaitingStep;
export type Work = Pick<StepWork<never>, 'context' | 'step' | 'key'>;

/** The time to decide a review about a budget that nothing resets. */
const longestAskMs = 30 * 86_400_000;
const shortestAskMs = 60_000;
/** The limit was raised while the call was refused. */
const atOnceMs = 500;

/**
 * Lets a step wait for budget or for a capability without an instance. It does not wait while another process makes its
 * call.
 * @returns null when the failure is none to wait for
 */
export async function waitForCall(ctx: LineCtx, work: Work, stop: CallStop): Promise<Waited | null> {
  const { db } = ctx;
  const { error, isFull, needsTimer, delayMs, leftMs, round } = stop;
  if (error.code === 'budget_exhausted') return waitForBudget(db, work, error);
  if (isFull) return waitForSlot(ctx, work, stop);
  const capability = capabilityOf(work.step.definition);
  const isMissing =
    error.code === 'no_instance' &&
    !(await isRegistered(db, { projectId: work.context.project_id, name: capability })) &&
    !(await isUnderWay(db, callKeyOf(work.key)));
  if (isMissing) return waitForCapability(db, work, capability);
  if (!needsTimer) return null;
  return waitToRetry(delayMs, { leftMs: leftMs - delayMs, rounds: round });
}

/** @param left what the step has left when its next attempt is due */
function waitToRetry(delayMs: number, left: Pick<WaitingStep, 'leftMs' | 'rounds'>): WaitingStep {
  return { kind: 'waiting', awaiting: 'retry', until: new Date(Date.now() + delayMs), ref: null, ...left };
}

interface AskedAgain {
  readonly request: Pick<StepRequest, 'again'>;
  readonly control: Pick<StepControl, 'remainingMs' | 'round'>;
}

/**
 * A step that fails after its batch has reported does not report its pause, and the queue continues with it at once,
 * maybe in another process. The rest of the pause is read from its last attempt (B8).
 * @returns null when none is left, or too little time for a call after it
 */
export async function waitForRetry(
  db: Db,
  { context, step, key }: Work,
  { request, control: { remainingMs, round } }: AskedAgain,
): Promise<WaitingStep | null> {
  const last = request.again && round === 1 ? await readLastFailure(db, callKeyOf(key)) : undefined;
  if (last === undefined) return null;
  const { retry } = resolveStepSettings(context.definition, step.definition);
  const [spacing, failures] = last.is_counted ? [retry, last.counted] : [uncountedDelay, round];
  const pauseMs = longerPause(backoffMs(spacing, failures, Math.random()), last.asked_ms);
  const delayMs = pauseMs - last.age_ms;
  if (delayMs <= 0 || !hasTimeFor(delayMs, remainingMs)) return null;
  return waitToRetry(delayMs, { leftMs: remainingMs - delayMs, rounds: round });
}

// Waiting for a slot is a wait: a row in the line, which counts against no timeout but the step's own `queue_timeout`.

type LineCtx = Pick<WorkerCtx, 'db' | 'fleet'>;

const nothingWished: LineWish = { key: null, ...anySlot };

/** By how often it was called without a result. */
const asideMs = Array.from({ length: 10 }, (_, at) => standAsideMs(at + 1));

export async function waitForSlot(
  { db, fleet }: LineCtx,
  { context, step, key }: Work,
  { error, leftMs, wish = nothingWished }: CallStop,
): Promise<Waited> {
  const settings = resolveStepSettings(context.definition, step.definition);
  const { priority, ...route } = routeOfStep(step.definition, settings, {
    priority: context.priority,
    ceilingUsd: null,
    remainingMs: leftMs,
  });
  const line = lineOf({ ...route, scope: fleet.seenBy(context.project_id).scopeOf(route.capability) });
  const { key: loads, ...refusal } = wish;
  const rank = rankOf(priority);
  const wait = {
    awaiting: 'slot',
    until: null,
    for_ms: settings.queueTimeoutMs,
    begins: false,
    data: { reason: error.message },
  } as const;
  const held = await db.transaction(async (trx) => {
    const kept = await keepWaiting(trx, key, wait);
    if (kept !== undefined)
      await queueCall(trx, { ...key, line, priority: rank, loads, ...refusal, asideMs });
    return kept;
  });
  if (held === undefined) return readEnd(db, key);
  fleet.noteInLine(line, rank);
  return { kind: 'waiting', awaiting: 'slot', until: held.wait_until, ref: null, leftMs };
}

/** How a step that waited for a slot continues. */
export type SlotTurn = { readonly isCalled: boolean } | { readonly failed: Failure };

/**
 * @param stored the step's row, if the step may have waited
 * @returns whether its call may take a slot now, or why the step fails: its `queue_timeout` is over
 */
export async function endSlotWait(
  { db, fleet }: LineCtx,
  { context, step, key }: Work,
  stored: StoredStep | undefined,
): Promise<SlotTurn> {
  if (stored?.awaiting !== 'slot') return { isCalled: false };
  const { wait_left_ms } = stored;
  const queued = await readQueuedCall(db, key);
  if (queued === undefined || queued.is_called || (wait_left_ms ?? 1) > 0) {
    return { isCalled: queued?.is_called === true };
  }
  const { queue_timeout = context.definition.defaults?.queue_timeout ?? '' } = step.definition;
  const route = routeOfLine(queued.line);
  const filter = createRouteFilter(route);
  const { instances } = fleet.seenBy(context.project_id).of(route.capability);
  const possible = instances.filter((one) => excludeByRoute(one, filter) === null);
  const waited = {
    capability: route.capability,
    waitedMs: queued.waited_ms,
    ahead: queued.ahead,
    endpoints: possible.map(({ endpoint }) => endpoint),
  };
  return { failed: toQueueTimeout(waited, queue_timeout) };
}

function runOf({ run_id }: BudgetRefusal, { context }: Work): string {
  return run_id ?? context.run_id;
}

async function askForMoney(trx: Db, work: Work, refusal: BudgetRefusal) {
  const { context, step, key } = work;
  const { run_id: _, ...details } = refusal;
  const { scope, minimum_usd, resets_at } = refusal;
  const reset = resets_at === null ? '' : `; it resets at ${resets_at}`;
  const left = resets_at === null ? longestAskMs : Date.parse(resets_at) - (await readUnixTime(trx)) * 1_000;
  return openReview(trx, {
    project_id: context.project_id,
    kind: 'budget',
    subject: budgetScopeOf(refusal, context),
    ...(scope === 'run' ? { run_id: runOf(refusal, work) } : {}),
    reason: `the budget of ${nameRefusing(refusal)} is used up${describeFigures(refusal)}; step ${key.step_id} needs ${minimum_usd}${reset}`,
    payload: {
      optional: step.definition.optional ?? false,
      details: { ...details, run_id: key.run_id, step_id: key.step_id },
    },
    due_in_ms: Math.max(shortestAskMs, left),
  });
}

/** Reverts the written wait: there is room again, or the step has ended. */
class NoWait extends Error {
  override readonly name = 'NoWait';
  readonly because: 'room' | 'ended';

  constructor(because: NoWait['because']) {
    super(because);
    this.because = because;
  }
}

/** Locks the review, then the budget, then the step, in the same order as the raise of a limit. */
async function writeBudgetWait(trx: Db, work: Work, refusal: BudgetRefusal): Promise<WaitingStep> {
  const scope = budgetScopeOf(refusal, work.context);
  const { review_id } = await askForMoney(trx, work, refusal);
  if (await hasRoomFor(trx, scope, toNanoUsd(refusal.minimum_usd))) throw new NoWait('room');
  const held = await keepWaiting(trx, work.key, {
    awaiting: 'budget',
    until: refusal.resets_at,
    for_ms: null,
    begins: false,
    budget_scope: scope,
    data: { review_id, scope },
  });
  if (held === undefined) throw new NoWait('ended');
  return { kind: 'waiting', awaiting: 'budget', until: held.wait_until, ref: { review_id } };
}

async function waitForBudget(db: Db, work: Work, error: Failure): Promise<Waited> {
  const refusal = error.details as unknown as BudgetRefusal;
  try {
    return await db.transaction((trx) => writeBudgetWait(trx, work, refusal));
  } catch (fault) {
    if (!(fault instanceof NoWait)) throw fault;
    return fault.because === 'room' ? { kind: 'retry', error, delayMs: atOnceMs } : readEnd(db, work.key);
  }
}

async function waitForCapability(db: Db, { step, key }: Work, capability: string): Promise<Waited> {
  const { ms: for_ms, failure } = waitForCapabilityOf(step.definition);
  const begun = { awaiting: 'capability', capability, until: null, for_ms, begins: false } as const;
  const held = for_ms === 0 ? null : await keepWaiting(db, key, begun);
  if (held === undefined) return readEnd(db, key);
  if (held?.wait_left_ms != null && held.wait_left_ms > 0) {
    return { kind: 'waiting', awaiting: 'capability', until: held.wait_until, ref: null };
  }
  return failStep(db, key, failure);
}

/** The largest difference between clocks; with more time left, a signal has woken the step. */
const clocksDifferMs = 60_000;
/** Less for a call in line: it was rather called than woken too early. */
const calledApartMs = 2_000;

/** @param remainingMs the time in which a retry is possible at all */
export async function waitForRest(
  db: Db,
  waiting: WaitingStep,
  { key, remainingMs }: { readonly key: StepKey; readonly remainingMs: number },
): Promise<StepExecution | WaitingStep> {
  if (waiting.until === null || waiting.awaiting === 'retry') return waiting;
  const { wait_left_ms = null } = (await readStep(db, key)) ?? {};
  const differMs = waiting.awaiting === 'slot' ? calledApartMs : clocksDifferMs;
  if (wait_left_ms === null || wait_left_ms > Math.min(differMs, remainingMs / 2)) return waiting;
  const delayMs = Math.max(1, Math.ceil(wait_left_ms));
  const error = { code: 'unavailable', message: `the wait ends in ${delayMs} ms` };
  return { kind: 'retry', error, delayMs };
}

/** The workflow begins no step in a pause, so a first attempt that is made at once does not ask for one. */
const atOnceAfterMs = 1_000;

type AskedInPause = Pick<StepRequest, 'run_id' | 'again' | 'paused_ms'>;

/** Whether the run may have been paused since the step was requested. */
function mayBePaused(
  { again = false }: AskedInPause,
  { round, askedAtMs = Date.now() }: Pick<StepControl, 'round' | 'askedAtMs'>,
): boolean {
  return again || round > 1 || Date.now() - askedAtMs > atOnceAfterMs;
}

/**
 * Reads how long the run was paused since the step was requested. A held step waits for its next attempt, with the time
 * that it had left when the pause began: the machine resumes it after the pause (M9).
 */
export async function readStepPause(
  db: Db,
  { run_id, paused_ms: before = 0 }: AskedInPause,
  { askedAtMs = 0, round }: Pick<StepControl, 'askedAtMs' | 'round'>,
): Promise<StepPause<WaitingStep>> {
  const { is_paused, paused_ms } = await readPause(db, run_id);
  const passedMs = Math.min(Math.max(0, paused_ms - before), Date.now() - askedAtMs);
  const hold = (remainingMs: number, delayMs: number): WaitingStep =>
    waitToRetry(delayMs, { leftMs: remainingMs + passedMs, rounds: round });
  return { passedMs, hold: is_paused || passedMs > 0 ? hold : () => null };
}

/** Before an attempt. @returns null when it may begin */
export async function holdIfPaused(
  db: Db,
  request: AskedInPause,
  control: Pick<StepControl, 'round' | 'askedAtMs' | 'remainingMs'>,
): Promise<WaitingStep | null> {
  if (!mayBePaused(request, control)) return null;
  return (await readStepPause(db, request, control)).hold(control.remainingMs, 0);
}

/** A step that only waits. The database's clock decides its end. */
export async function executePause(
  db: Db,
  { step, key }: StepUnit,
  stored: StoredStep | undefined,
): Promise<StepExecution | WaitingStep> {
  if (stored !== undefined) return endPause(db, key, stored);
  const for_ms = parseDuration(step.definition.wait ?? '0s');
  const held = await keepWaiting(db, key, { awaiting: 'time', until: null, for_ms, begins: true });
  if (held === undefined) return readEnd(db, key);
  return { kind: 'waiting', awaiting: 'time', until: held.wait_until, ref: null };
}

async function endPause(
  db: Db,
  key: StepKey,
  { wait_until, wait_left_ms }: StoredStep,
): Promise<StepExecution | WaitingStep> {
  if ((wait_left_ms ?? 0) > 0) return { kind: 'waiting', awaiting: 'time', until: wait_until, ref: null };
  await answerStep(db, key, { state: 'succeeded', output: null, data: {} });
  return readEnd(db, key);
}

const pauseMs = 250;

/**
 * Waits while another process makes the call of a step: a batch has begun it, or Temporal has dispatched the step again
 * after late heartbeats. A dead process holds the step until its lease expires; a process whose step is cancelled loses
 * it and aborts the call.
 *
 * @returns the control with the remaining time of the step
 */
export async function waitForHolder(db: Db, key: StepKey, control: StepControl): Promise<StepControl> {
  const name = callKeyOf(key);
  const { signal } = control;
  const deadline = performance.now() + control.remainingMs;
  while (await isHeld(db, [name])) {
    if (signal.reason === 'cancelled') await loseOpenAttempt(db, name);
    if (signal.aborted || performance.now() > deadline) break;
    await pause(pauseMs, undefined, { signal: toAbortSignal(signal) }).catch(() => undefined);
  }
  return { ...control, remainingMs: Math.max(0, deadline - performance.now()) };
}
