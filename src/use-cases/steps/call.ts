/**
 * Makes the routed call of one execution of a step, and completes the step with its result, which is already in the
 * database. If a ladder continues with a failure, the step stays open.
 *
 * Progress of the call is written to the log of the run: at most two lines a second, and always the last one. So is the
 * text of an answer that comes in parts.
 */

import { type CallLog, callLogBounds, toDeltaLine } from '@capstan/core/call/log-lines';
import type { CallProgress } from '@capstan/core/call/outcome';
import { hasTimeFor, longestWaitMs, outOfTime } from '@capstan/core/call/retry';
import type { CallEnd, CallInBatch, CallLater } from '@capstan/core/call/types';
import type { CancelSignal } from '@capstan/core/cancellation';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { Failure, Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { CompiledStep } from '@capstan/core/definition/compile';
import { resolveStepSettings, routeOfStep, type StepSettings } from '@capstan/core/definition/step-settings';
import { readDelta } from '@capstan/core/model-protocols/model-answer';
import type { LineWish } from '@capstan/core/routing/call-line';
import type { StepExecution } from '@capstan/core/workflow-payloads';
import type { Ctx } from '../../context.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import { callKeyOf } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { readPause } from '../../db/run/run-control.ts';
import { endStep, type StoredStep } from '../../db/step/step.ts';
import { insertProgressNote, keepStepOpen } from '../../db/step/step-progress.ts';
import type { CallRequest, CallSecrets, Claimed } from '../../parts/calls/routed-call.ts';
import type { RunContext } from '../../parts/definitions/run-context.ts';
import type { StepResults, UncommittedResults } from '../../parts/definitions/step-results.ts';
import { callForOwner } from '../routing/call.ts';
import { readEnd } from './step-end.ts';

interface CallProgressLog {
  readonly note: (progress: CallProgress) => void;
  /** The call has ended: unwritten progress is dropped. */
  readonly stop: () => void;
}

const pauseMs = 500;

/** @param tell receives all of it */
export function createCallProgressLog(
  db: Db,
  key: StepKey,
  tell: (progress: CallProgress) => void = () => undefined,
): CallProgressLog {
  let waiting: CallProgress | null = null;
  let timer: NodeJS.Timeout | null = null;
  let isOver = false;
  const write = (): void => {
    timer = null;
    if (waiting === null) return;
    // A line that cannot be written is one of many; the call continues.
    insertProgressNote(db, key, waiting).catch(() => undefined);
    waiting = null;
    timer = setTimeout(write, pauseMs).unref();
  };
  return {
    note: (progress) => {
      tell(progress);
      waiting = progress;
      if (timer === null && !isOver) write();
    },
    stop: () => {
      if (timer !== null) clearTimeout(timer);
      isOver = true;
    },
  };
}

type OpenLog = NonNullable<CallRequest['openLog']>;

interface CallTextLog {
  /** Opens the log of an attempt, whose text begins again. */
  readonly openLog: OpenLog;
  /** @param delta a part of the result, as the instance passes it on */
  readonly note: (delta: Json) => void;
}

/**
 * Writes the text of an answer while it grows: each line holds what has come since the line before. An attempt's last
 * line is written when its call has ended. Beyond a limit, the rest is only in the result.
 */
export function createCallTextLog(open: OpenLog): CallTextLog {
  let log: CallLog | null = null;
  let waiting = '';
  let room = 0;
  let timer: NodeJS.Timeout | null = null;
  const take = (): void => {
    if (waiting !== '') log?.note(toDeltaLine(waiting));
    waiting = '';
  };
  const stop = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
  };
  const write = (): void => {
    timer = waiting === '' ? null : setTimeout(write, pauseMs).unref();
    take();
  };
  return {
    openLog: (origin) => {
      stop();
      const own = open(origin);
      log = own;
      waiting = '';
      room = callLogBounds.bytes;
      const flush = (): void => {
        stop();
        take();
        own.flush();
      };
      return { note: own.note, flush };
    },
    note: (delta) => {
      const { index, content } = readDelta(delta);
      const text = index === 0 ? (content ?? '').slice(0, room) : '';
      room -= text.length;
      waiting += text;
      if (timer === null) write();
    },
  };
}

export interface StepControl {
  /** 1 for the first attempt of the activity at this step. */
  readonly round: number;
  /** The remaining time of the step's total timeout. */
  readonly remainingMs: number;
  readonly signal: CancelSignal;
  readonly onProgress?: (progress: CallProgress) => void;
  /** When the step was first requested, Unix milliseconds. Default: now. */
  readonly askedAtMs?: number;
  /** Receives the step's state as its row was read. */
  readonly onStored?: (stored: StoredStep) => void;
  /** Set in a batch, which leaves retries to the queue. Default: the step came from the queue. */
  readonly batch?: UnitInBatch;
}

export interface UnitInBatch extends CallInBatch {
  /** The answers that the step depends on and that are being stored. */
  readonly answers: UncommittedResults;
}

/** B6: if the answers that its input was made of were not stored, nothing is written of a step. */
export async function isOfStored({ batch }: Pick<StepControl, 'batch'>): Promise<boolean> {
  return batch?.stored ?? true;
}

export interface StepWork<Waited> {
  readonly context: RunContext;
  readonly step: CompiledStep;
  readonly key: StepKey;
  /** With references in place of secrets. */
  readonly input: JsonObject;
  readonly secrets: CallSecrets | null;
  /** Failures that leave the step open. */
  readonly holds: (code: ErrorCode) => boolean;
  /** B3: this process knows of no earlier execution of the step. */
  readonly beginsStep: boolean;
  /** N4: the call may wait in line, and whether it was called. Default: it never waits in line. */
  readonly inLine?: { readonly isCalled: boolean };
  /** Lets a call that did not end wait instead of failing or being retried; null = it does not wait. */
  readonly wait: (stop: CallStop) => Promise<Waited | null>;
  /** Its attempt that was left to its instance, and continues here. Default: there is none. */
  readonly adopted?: Claimed | undefined;
  /** How the step waits for an answer that comes later. Default: its process waits. */
  readonly park?: (until: Date, leftMs: number) => Waited;
  /** Reads the pauses of the run, after a failure. Default: a ladder makes the call, which a pause holds itself. */
  readonly pause?: () => Promise<StepPause<Waited>>;
}

/** The pauses of a run, as an execution of one of its steps sees them. */
export interface StepPause<Waited> {
  /** How much of the time since the step was requested the run was paused. */
  readonly passedMs: number;
  /**
   * Lets a step that has this time left wait for its next attempt, which is due after the delay; null: the run was not
   * paused since the step was requested.
   */
  hold(remainingMs: number, delayMs: number): Waited | null;
}

/** Why a call did not end, and when it may be made again. */
export interface CallStop {
  readonly error: Failure;
  readonly delayMs: number;
  /** Every instance that could take the call is full. */
  readonly isFull: boolean;
  /** The slot that the call waits for. */
  readonly wish?: LineWish | undefined;
  /** A retry by the queue would come at once, or would count the time that the call has waited for a slot. */
  readonly needsTimer: boolean;
  /** What is left of the step's total timeout, ms. */
  readonly leftMs: number;
  /** How often the call was made. */
  readonly round: number;
}

/** @typeParam Waited the result when the step waits */
export async function callForStep<Waited = never>(
  ctx: Ctx,
  work: StepWork<Waited>,
  control: StepControl,
): Promise<StepExecution | Waited> {
  const { db } = ctx;
  const beganAt = performance.now();
  const { key } = work;
  const isInBatch = control.batch !== undefined;
  const settings = resolveStepSettings(work.context.definition, work.step.definition);
  if (isInBatch && settings.retry.max === 0) return notInline; // B8
  const { totalTimeoutMs } = settings;
  const time = { totalTimeoutMs, isInBatch, round: control.round };
  if (control.remainingMs <= 0 && work.adopted === undefined)
    return comeAgain(db, work, { ...tooLate, remainingMs: 0, ...time });
  const end = await makeCall(ctx, work, { settings, control });
  // A call that no instance takes was not sent, so the answers that its input was made of may still be unstored.
  if (end.kind !== 'succeeded' && !(await isOfStored(control))) return readEnd(db, key);
  switch (end.kind) {
    case 'succeeded':
      remember(ctx.results, key, end);
      return end;
    case 'failed':
    case 'unknown':
      return endFailed(db, work, end);
    case 'closed':
      return readEnd(db, key);
    case 'later':
      return work.park?.(end.until, control.remainingMs - (performance.now() - beganAt)) ?? readEnd(db, key);
    case 'retry': {
      const remainingMs = control.remainingMs - (performance.now() - beganAt) + end.waitedMs;
      return comeAgain(db, work, { ...end, remainingMs, ...time });
    }
    case 'cancelled':
      return end;
  }
}

/** Makes the call, and shows its progress and its text. */
function makeCall(
  ctx: Ctx,
  work: StepWork<unknown>,
  { settings, control }: { readonly settings: StepSettings; readonly control: StepControl },
): Promise<CallEnd | CallLater> {
  const { db } = ctx;
  const { key, adopted = null } = work;
  const progress = createCallProgressLog(db, key, control.onProgress);
  const text = createCallTextLog((origin) => ctx.callLogs.open(key, origin));
  const isHeld = async () => (await readPause(db, key.run_id)).is_paused;
  const told = { onProgress: progress.note, openLog: text.openLog, onDelta: text.note, isHeld };
  return callForOwner(ctx, toCall(work, settings, { control, told }), adopted).finally(progress.stop);
}

/** After a failed attempt the step has cost more than this attempt, so its cost is read from the database. */
function remember(
  results: StepResults,
  { run_id, step_id, item, revision }: StepKey,
  { attempt, output }: Extract<CallEnd, { kind: 'succeeded' }>,
): void {
  if (attempt?.number === 1 && revision === 0 && item === 0) {
    results.remember(run_id, step_id, { output, costUsd: attempt.cost_usd });
  }
}

async function endFailed<Waited>(
  db: Db,
  work: StepWork<Waited>,
  { kind, error, isRecorded }: Extract<CallEnd, { kind: 'failed' | 'unknown' }>,
): Promise<StepExecution | Waited> {
  if (isRecorded) return { kind, error };
  const waited = await work.wait({
    error,
    delayMs: 0,
    isFull: false,
    needsTimer: false,
    leftMs: 0,
    round: 1,
  });
  if (waited !== null) return waited;
  return (await recordFailure(db, work, error)) ? { kind, error } : readEnd(db, work.key);
}

interface TimedRetry extends Pick<CallStop, 'error' | 'delayMs' | 'isFull' | 'wish'> {
  readonly waitedMs: number;
  readonly remainingMs: number;
  readonly totalTimeoutMs: number;
  readonly isInBatch: boolean;
  readonly round: number;
}

/**
 * Retries later, as long as there is time; in a batch always, since the queue continues with the step (B8). If the run
 * was paused since the step was requested, it waits instead: Temporal's own retries know of no pause.
 */
async function comeAgain<Waited>(
  db: Db,
  work: StepWork<Waited>,
  { error, delayMs, isFull, wish, waitedMs, ...time }: TimedRetry,
): Promise<StepExecution | Waited> {
  const pause = time.isInBatch || isFull ? undefined : await work.pause?.();
  const leftMs = time.remainingMs + (pause?.passedMs ?? 0);
  const held = pause?.hold(time.remainingMs, delayMs) ?? null;
  if (held !== null && hasTimeFor(0, leftMs)) return held; // no time of the step passes while it waits
  const needsTimer = (time.isInBatch || waitedMs > 0) && delayMs > 0 && hasTimeFor(delayMs, leftMs);
  const { round } = time;
  const waited = await work.wait({ error, delayMs, isFull, wish, needsTimer, leftMs, round });
  if (waited !== null) return waited;
  const later: StepExecution = { kind: 'retry', error, delayMs };
  if (time.isInBatch) return later;
  if (hasTimeFor(delayMs, leftMs)) {
    await showRefusal(db, work.key, error);
    return later;
  }
  const timeout = outOfTime(error, time.totalTimeoutMs);
  const isRecorded = await recordFailure(db, work, timeout);
  return isRecorded ? { kind: 'failed', error: timeout } : readEnd(db, work.key);
}

/** Errors of a call that no instance takes: they are shown while the step is retried. */
const unclaimed: ReadonlySet<string> = new Set<ErrorCode>(['no_instance', 'budget_reserved']);

async function showRefusal(db: Db, key: StepKey, { code, message }: Failure): Promise<void> {
  if (!unclaimed.has(code)) return;
  const error = { code, message };
  await keepStepOpen(db, key, { state: 'retrying', error, data: { error } });
}

interface StepCallControl {
  readonly control: StepControl;
  readonly told: Pick<CallRequest, 'onProgress' | 'openLog' | 'onDelta' | 'isHeld'>;
}

function toCall(
  work: Omit<StepWork<unknown>, 'wait' | 'pause'>,
  settings: StepSettings,
  { control, told }: StepCallControl,
): CallRequest {
  const { context, step, key, input, secrets, holds, beginsStep, inLine, park } = work;
  const { definition } = step;
  const { round, remainingMs, signal, batch } = control;
  return {
    projectId: context.project_id,
    caller: { run_id: key.run_id, scopes: context.scopes },
    key: callKeyOf(key),
    isKeyNew: false,
    step: key,
    beginsStep,
    isAtMostOnce: settings.retry.max === 0,
    input,
    secrets,
    jobId: context.job_id,
    route: {
      mayReceive: secrets?.mayReceive,
      ...routeOfStep(definition, settings, {
        priority: context.priority,
        ceilingUsd: context.ceilingUsd,
        onBudget: context.on_budget,
        remainingMs,
      }),
    },
    resendsWithinMs: remainingMs,
    retry: settings.retry,
    round,
    maxWaitMs: longestWaitMs,
    inLine,
    parks: park !== undefined,
    signal,
    batch,
    holdsStep: holds,
    ...told,
  };
}

/** The step was requested, or its last call ended, when its time was almost over. */
const tooLate = {
  error: { code: 'unavailable', message: 'no time was left for a call' },
  delayMs: 0,
  isFull: false,
  waitedMs: 0,
} as const;

/** A step that is sent at most once must not be left, so it is never inline. */
const notInline: StepExecution = {
  kind: 'retry',
  delayMs: 0,
  error: { code: 'unavailable', message: 'retry.max is 0: it is done from the queue' },
};

/**
 * Writes a failure that no attempt has written. @returns false when the step had ended, by an attempt whose end was not
 * reported
 */
async function recordFailure(
  db: Db,
  { key, holds }: Pick<StepWork<never>, 'key' | 'holds'>,
  error: Failure,
): Promise<boolean> {
  if (!holds(error.code as ErrorCode)) return endStep(db, key, { state: 'failed', error });
  return keepStepOpen(db, key, { state: 'retrying', error, data: { error: { ...error } } });
}

export interface StepRequest {
  readonly run_id: string;
  readonly step_id: string;
  /** Absent or 0 = the step as a whole. */
  readonly item?: number;
  /** Grows with each corrected input. */
  readonly revision: number;
  /** The run can handle an escalation. */
  readonly escalates?: boolean;
  /** It may be called off while it is in flight. */
  readonly is_callable_off?: boolean;
  /** Its wait is over. */
  readonly resumed?: boolean;
  /** From the queue, after a batch began it, where it may still be in flight. */
  readonly again?: boolean;
  /** How often its call was made before the wait. */
  readonly rounds?: number;
  /** The number of the last change of the run's ceiling that its workflow has received. */
  readonly budget_version?: number;
  /** How long its run was paused before the request. Default: it was not. */
  readonly paused_ms?: number;
}
