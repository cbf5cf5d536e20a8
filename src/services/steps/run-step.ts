/**
 * One execution of a step: its input, a routed call, what became of it. Whatever it answers is already in the
 * database. A failure that is held leaves the step open, because a ladder goes on with it.
 */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure, Json, JsonObject } from '../../contracts/primitives.ts';
import { longestWaitMs } from '../../core/call/limits.ts';
import { hasTimeFor, outOfTime } from '../../core/call/step-time.ts';
import type { SuccessfulAttempt } from '../../core/call/types.ts';
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';
import type { CompiledStep } from '../../core/definition/compile/compile-definition.ts';
import { routeOfStep } from '../../core/definition/compile/step-route.ts';
import { resolveStepSettings, type StepSettings } from '../../core/definition/compile/step-settings.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { readRunEnd } from '../../db/run/run.ts';
import { endStep, readStep } from '../../db/step/step.ts';
import { holdStep } from '../../db/step/step-open.ts';
import type { CallCapability, CallRequest } from '../routing/routed-call.ts';
import type { RunContext } from '../run-data/run-context.ts';
import type { StepResults } from '../run-data/step-results.ts';

export type StepExecution =
  | {
      readonly kind: 'succeeded';
      readonly output: Json;
      readonly attempt: SuccessfulAttempt | null;
    }
  | { readonly kind: 'failed' | 'unknown'; readonly error: Failure }
  | { readonly kind: 'retry'; readonly error: Failure; readonly delayMs: number }
  /** By a person. */
  | { readonly kind: 'skipped' }
  | { readonly kind: 'cancelled' };

export interface StepControl {
  /** 1 for the first time that the owner comes with this step. */
  readonly round: number;
  /** What is left of the step's total timeout. */
  readonly remainingMs: number;
  readonly signal: CancelSignal;
}

export interface RunStepDependencies {
  readonly db: Db;
  readonly results: StepResults;
  readonly callCapability: CallCapability;
}

export interface StepWork<Waited> {
  readonly context: RunContext;
  readonly step: CompiledStep;
  readonly key: StepKey;
  readonly input: JsonObject;
  /** Failures after which the step stays open. */
  readonly holds: (code: ErrorCode) => boolean;
  /** Of a call that nothing took: instead of failing or coming back; null = it does not wait. */
  readonly wait: (code: ErrorCode, error: Failure) => Promise<Waited | null>;
  /** Only for as long as there is time: then it is left as by a worker that stops, and somebody else goes on with it. */
  readonly isInline: boolean;
}

/** @typeParam Waited what a wait makes of the step */
export async function runStep<Waited = never>(
  { db, results, callCapability }: RunStepDependencies,
  work: StepWork<Waited>,
  control: StepControl,
): Promise<StepExecution | Waited> {
  const beganAt = performance.now();
  const { key, isInline } = work;
  const settings = resolveStepSettings(work.context.definition, work.step.definition);
  if (isInline && settings.retry.max === 0) return notInline;
  const end = isInline
    ? await forAMoment(control, (own) => callCapability(toCall(work, settings, own)))
    : await callCapability(toCall(work, settings, control));
  switch (end.kind) {
    case 'succeeded':
      // After a failed attempt the step has cost more than this attempt: let the database say how much.
      if (end.attempt?.number === 1 && key.revision === 0 && key.item === 0) {
        results.remember(key.run_id, key.step_id, end.output, end.attempt.cost_usd);
      }
      return end;
    case 'failed':
    case 'unknown': {
      const waited = end.isRecorded ? null : await work.wait(end.error.code as ErrorCode, end.error);
      if (waited !== null) return waited;
      if (!end.isRecorded) await recordFailure(db, work, end.error);
      return { kind: end.kind, error: end.error };
    }
    case 'closed':
      return readEnd(db, key);
    case 'retry': {
      const waited = await work.wait(end.error.code as ErrorCode, end.error);
      if (waited !== null) return waited;
      const left = control.remainingMs - (performance.now() - beganAt);
      if (isInline) return end;
      if (hasTimeFor(end.delayMs, left)) {
        await showRefusal(db, key, end.error);
        return end;
      }
      const error = outOfTime(end.error, settings.totalTimeoutMs);
      await recordFailure(db, work, error);
      return { kind: 'failed', error };
    }
    case 'cancelled':
      return end;
  }
}

/** Why nobody takes it: people see it while the step is tried again. */
const unclaimed: ReadonlySet<string> = new Set<ErrorCode>(['no_instance', 'budget_reserved']);

async function showRefusal(db: Db, key: StepKey, { code, message }: Failure): Promise<void> {
  if (!unclaimed.has(code)) return;
  const error = { code, message };
  await holdStep(db, key, 'retrying', { error, data: { error } });
}

/** The Idempotency-Key of a step's calls. */
export function callKeyOf({ run_id, step_id, item, revision }: StepKey): string {
  return `${run_id}.${step_id}.${item}.${revision}`;
}

function toCall(
  { context, step: { definition }, key, input, holds, isInline }: Omit<StepWork<never>, 'wait'>,
  settings: StepSettings,
  { round, remainingMs, signal }: StepControl,
): CallRequest {
  return {
    projectId: context.project_id,
    key: callKeyOf(key),
    isKeyNew: false,
    step: key,
    isAtMostOnce: settings.retry.max === 0,
    input,
    route: routeOfStep(definition, settings, {
      priority: context.priority,
      ceilingUsd: context.ceilingUsd,
      remainingMs: isInline ? Number.POSITIVE_INFINITY : remainingMs,
    }),
    retry: settings.retry,
    round,
    maxWaitMs: Math.min(longestWaitMs, remainingMs),
    signal,
    holdsStep: holds,
  };
}

/** What is sent at most once must not be left. */
const notInline: StepExecution = {
  kind: 'retry',
  delayMs: 0,
  error: { code: 'unavailable', message: 'retry.max is 0: it is done from the queue' },
};

/** That a timer takes. */
const longestTimerMs = 2_147_483_647;

/** A call that takes longer than there is time ends without being counted. */
async function forAMoment<End>(control: StepControl, call: (own: StepControl) => Promise<End>): Promise<End> {
  const stop = new CancelSource();
  const stopListening = onCancel(control.signal, () => stop.abort(control.signal.reason));
  const timer = setTimeout(() => stop.abort('abandoned'), Math.min(control.remainingMs, longestTimerMs));
  try {
    return await call({ ...control, signal: stop });
  } finally {
    clearTimeout(timer);
    stopListening();
  }
}

/** Of a failure that no attempt has written. */
async function recordFailure(
  db: Db,
  { key, holds }: Pick<StepWork<never>, 'key' | 'holds'>,
  error: Failure,
): Promise<void> {
  if (!holds(error.code as ErrorCode)) return endStep(db, key, 'failed', error);
  await holdStep(db, key, 'retrying', { error, data: { error: { ...error } } });
}

/** The end that somebody else wrote. While there is none, another attempt is on its way: come again. */
export async function readEnd(db: Db, key: StepKey): Promise<StepExecution> {
  const row = await readStep(db, key);
  // An item that never began of a run that has ended: nobody wrote its end.
  if (row === undefined && (await readRunEnd(db, key.run_id)) !== undefined) return { kind: 'cancelled' };
  const error = row?.error ?? { code: 'contact_lost', message: 'a later attempt has taken over' };
  switch (row?.state) {
    case 'succeeded':
    case 'reused':
      return { kind: 'succeeded', output: row.output, attempt: null };
    case 'failed':
    case 'unknown':
      return { kind: row.state, error };
    case 'skipped':
    case 'cancelled':
      return { kind: row.state };
    default:
      return { kind: 'retry', error, delayMs: 1_000 };
  }
}
