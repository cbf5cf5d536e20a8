/**
 * Executes a step, or one item of it, of any kind. The first execution, with the input that the definition gives, may
 * end in an escalation; the ladder executes the corrected inputs and also decides how the step ends. A step that has to
 * wait returns that, and is executed again when the wait is over, from the state in its row.
 *
 * An execution runs in the span of its step. The span is reported when the step has ended: not when it waits, is
 * retried or escalates.
 */

import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { Failure, JsonObject } from '@capstan/core/contracts/primitives';
import {
  capabilityOf,
  type ResolvedCache,
  resolveCache,
  resolveEscalation,
} from '@capstan/core/definition/step-settings';
import { AppError } from '@capstan/core/errors/app-error';
import { isCorrectable } from '@capstan/core/ladder/classify-failure';
import type { FailedStep } from '@capstan/core/ladder/types';
import type { StepEnd, StepExecution, WaitingStep } from '@capstan/core/workflow-payloads';
import type { Ctx, WorkerCtx } from '../../context.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import { callKeyOf } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { readBudgetVersion } from '../../db/run/run.ts';
import { readPause } from '../../db/run/run-control.ts';
import { readStep, type StoredStep, storeValues } from '../../db/step/step.ts';
import { findRevisionFailure, readStepRevision } from '../../db/step/step-revision.ts';
import { withAnswers } from '../../parts/definitions/step-results.ts';
import { resolveInput, type StepUnit, stepOf } from '../run-data/evaluation.ts';
import { resolveCallInput } from '../secrets/step-secrets.ts';
import { endStepSpan, scopeOfStep } from '../telemetry/run-spans.ts';
import {
  type CallStop,
  callForStep,
  isOfStored,
  type StepControl,
  type StepRequest,
  type StepWork,
} from './call.ts';
import { executeEvent } from './event.ts';
import { findLaterCall, waitForAnswer } from './later-answer.ts';
import { executeReview } from './review.ts';
import { endOf, failStep, findMissingFile, readEnd } from './step-end.ts';
import { executeSubRun } from './sub-run.ts';
import {
  endSlotWait,
  executePause,
  holdIfPaused,
  readStepPause,
  waitForCall,
  waitForHolder,
  waitForRest,
  waitForRetry,
  waitForSlot,
} from './waits.ts';

export async function executeStep(
  ctx: WorkerCtx,
  request: StepRequest,
  control: StepControl,
): Promise<StepEnd> {
  const { run_id, step_id, item = 0, revision } = request;
  const key = { run_id, step_id, item, revision };
  const joined = control.batch === undefined ? ctx.inFlightSteps.join(key, control) : null; // B9
  if (joined !== null) return joined;
  const context = await ctx.contexts.open(run_id, request.budget_version);
  const unit: StepUnit = { context, step: stepOf(context, step_id), key };
  const end = await executeInSpan(ctx, unit, { request, control });
  const isEarly = end.kind === 'waiting' && request.resumed === true;
  return isEarly ? waitForRest(ctx.db, end, { key, remainingMs: control.remainingMs }) : end;
}

interface AskedStep {
  readonly request: StepRequest;
  readonly control: StepControl;
}

const unfinishedKinds: ReadonlySet<string> = new Set(['waiting', 'retry', 'escalated']);

/** Executes a step in its span. A step that a batch began and whose end was reported is not reported again. */
async function executeInSpan(
  ctx: WorkerCtx,
  unit: StepUnit,
  { request, control }: AskedStep,
): Promise<StepEnd> {
  const { context, step, key } = unit;
  const { telemetry } = ctx;
  let startMs = control.askedAtMs ?? Date.now();
  let isTold = false;
  const onStored: StepControl['onStored'] = (stored) => {
    startMs = Math.min(startMs, stored.started_at?.getTime() ?? startMs);
    isTold = request.again === true && endOf(stored) !== null;
  };
  const end = await telemetry.tracing.within(scopeOfStep(telemetry, context, key), () =>
    executeUnit(ctx, unit, { request, control: { ...control, onStored } }),
  );
  if (isTold || unfinishedKinds.has(end.kind)) return end;
  const capability = step.kind === 'call' ? capabilityOf(step.definition) : null;
  const error = 'error' in end ? end.error.code : null;
  endStepSpan(telemetry, unit, { kind: step.kind, capability, startMs, state: end.kind, error });
  return end;
}

async function executeUnit(
  ctx: WorkerCtx,
  unit: StepUnit,
  { request, control }: AskedStep,
): Promise<StepEnd> {
  const { db } = ctx;
  if (unit.step.kind === 'call') {
    const mayBeHeld = request.again === true || control.round > 1;
    const left = mayBeHeld ? await waitForHolder(db, unit.key, control) : control;
    return executeCall(ctx, unit, { request, control: left });
  }
  const stored = await readStored(db, unit.key, control);
  if (stored !== undefined && stored.state !== 'waiting') return readEnd(db, unit.key);
  switch (unit.step.kind) {
    case 'run':
      if (stored?.sub_run_id == null) {
        const held = await holdIfPaused(db, request, control); // a child run is begun like an attempt
        if (held !== null) return held;
      }
      return executeSubRun(ctx, unit, stored);
    case 'wait':
      return executePause(db, unit, stored);
    case 'review':
      return executeReview(ctx, unit, stored);
    case 'event':
      return executeEvent(ctx, unit, stored);
    case 'set':
      return setValues(ctx, unit, control);
  }
}

/** The row of a step, whose state is reported. */
async function readStored(
  db: Db,
  key: StepKey,
  { onStored }: Pick<StepControl, 'onStored'>,
): Promise<StoredStep | undefined> {
  const stored = await readStep(db, key);
  if (stored !== undefined) onStored?.(stored);
  return stored;
}

/** Stores the values of a step with `set`. In a batch, it waits until the answers that it reads are stored (B6). */
async function setValues(
  { db, results }: Pick<WorkerCtx, 'db' | 'results'>,
  { context, step, key }: StepUnit,
  control: StepControl,
): Promise<StepExecution> {
  const { batch } = control;
  const known = batch === undefined ? results : withAnswers(results, batch.answers);
  const resolved = await resolveInput({ context, results: known }, step, key.item);
  if (!(await isOfStored(control))) return readEnd(db, key);
  if ('error' in resolved) return failStep(db, key, resolved.error);
  const output = resolved.input;
  return (await storeValues(db, key, output))
    ? { kind: 'succeeded', output, attempt: null }
    : readEnd(db, key);
}

async function executeCall(
  ctx: WorkerCtx,
  unit: StepUnit,
  { request, control }: AskedStep,
): Promise<StepEnd> {
  const { context, step, key } = unit;
  const { db, results } = ctx;
  const { escalates = false } = request;
  const stored = mayHaveBegun(request, control) ? await readStored(db, key, control) : undefined;
  const ended = stored === undefined ? null : endOf(stored);
  if (ended !== null) return ended; // before the choice: there may be no instance for it any more
  const known = control.batch === undefined ? results : withAnswers(results, control.batch.answers);
  const resolved = await resolveCallInput(ctx, { unit, results: known });
  const policy = key.revision > 0 ? null : resolveCache(context.definition, step.definition);
  const mayEndHere = policy !== null || 'error' in resolved; // neither a hit nor a failure precedes its dependencies
  if (mayEndHere && !(await isOfStored(control))) return readEnd(db, key);
  if ('error' in resolved) return failStep(db, key, resolved.error);
  const { input, secrets } = resolved;
  const holds = (code: ErrorCode): boolean => escalates && isCorrectable(code);
  let failure = escalates && stored !== undefined ? findHeldFailure(stored, holds) : null;
  const later = stored === undefined ? null : await findLaterCall(ctx, unit, { stored, control });
  if (later !== null && 'kind' in later) return later;
  if (failure === null) {
    const own = { unit, input, secrets, holds, policy, stored, adopted: later?.adopted };
    const end = await callOnOwn(ctx, own, { request, control: later?.control ?? control });
    if (end.kind !== 'failed' || !holds(end.error.code as ErrorCode)) return end;
    failure = end.error;
    const missing = await findMissingFile(ctx.media, input, failure);
    if (missing !== null) return failStep(db, key, missing);
  }
  return escalate(ctx, unit, { input, failure });
}

interface OwnCall extends Pick<StepWork<never>, 'input' | 'secrets' | 'holds' | 'adopted'> {
  readonly unit: StepUnit;
  /** Null: its result is not cached. */
  readonly policy: ResolvedCache | null;
  /** Undefined: it begins. */
  readonly stored: StoredStep | undefined;
}

/** Makes the call with the input that the definition gives. */
async function callOnOwn(
  ctx: WorkerCtx,
  { unit, policy, stored, ...call }: OwnCall,
  { request, control }: AskedStep,
): Promise<StepExecution | WaitingStep> {
  const inLine = await endSlotWait(ctx, unit, stored);
  if ('failed' in inLine) return failStep(ctx.db, unit.key, inLine.failed);
  const wait = (stop: CallStop) => waitForCall(ctx, unit, stop);
  const pause = () => readStepPause(ctx.db, request, control);
  const park = (until: Date, leftMs: number) => waitForAnswer(until, { leftMs, rounds: control.round });
  const beginsStep = !mayHaveBegun(request, control);
  const work = { ...unit, ...call, wait, pause, park, inLine, beginsStep };
  return callThroughCache(ctx, { ...work, policy }, { request, control });
}

function mayHaveBegun(
  { resumed = false, again = false }: StepRequest,
  { round }: Pick<StepControl, 'round'>,
): boolean {
  return round > 1 || resumed || again;
}

type OwnWork = StepWork<StepExecution | WaitingStep>;

/** An attempt that was left to its instance is no new call: neither a cached result nor a pause stops it. */
async function callThroughCache(
  ctx: WorkerCtx,
  { policy, ...work }: OwnWork & { readonly policy: ResolvedCache | null },
  { request, control }: AskedStep,
): Promise<StepExecution | WaitingStep> {
  if (work.adopted !== undefined) {
    const end = await callForStep(ctx, work, control);
    if (policy !== null && end.kind === 'succeeded') await ctx.resultCache.keep({ ...work, policy }, end);
    return end;
  }
  if (policy === null) return callUnlessPaused(ctx, work, { request, control });
  return ctx.resultCache.throughCache({ ...work, policy }, control, (remainingMs) =>
    callUnlessPaused(ctx, work, { request, control: { ...control, remainingMs } }),
  );
}

async function callUnlessPaused(
  ctx: WorkerCtx,
  work: OwnWork,
  { request, control }: AskedStep,
): Promise<StepExecution | WaitingStep> {
  const held = await holdIfPaused(ctx.db, request, control);
  return held ?? (await waitForRetry(ctx.db, work, { request, control })) ?? callForStep(ctx, work, control);
}

interface RevisionRequest extends StepKey {
  /** 0 = the definition's own input once more. */
  readonly revision: number;
}

/**
 * Executes a corrected input of a step. Any failure, or a cancel, leaves the step open: its ladder or its run continues
 * with it. A corrected input that was refused, or got a wrong answer, is not sent again: a repeated request gets the
 * same failure. Without a free slot, it waits in line like the step's own call.
 */
export async function executeRevision(
  ctx: Ctx,
  { run_id, step_id, item, revision }: RevisionRequest,
  control: StepControl,
): Promise<StepExecution | WaitingStep> {
  const { db, contexts, results } = ctx;
  // The ladder may continue because the ceiling was raised.
  const context = await contexts.open(run_id, await readBudgetVersion(db, run_id));
  const step = stepOf(context, step_id);
  const key: StepKey = { run_id, step_id, item, revision };
  const unit: StepUnit = { context, step, key };
  const corrected = revision === 0 ? undefined : await readRevisionInput(db, key);
  const resolved = await resolveCallInput(ctx, { unit, results }, corrected);
  if ('error' in resolved) return { kind: 'failed', error: resolved.error };
  const known = revision === 0 ? undefined : await findRevisionFailure(db, key, callKeyOf(key));
  if (known !== undefined) return { kind: 'failed', error: known };
  if ((await readPause(db, run_id)).is_paused) return heldRevision;
  const inLine = await endSlotWait(ctx, unit, await readStep(db, key));
  if ('failed' in inLine) return { kind: 'failed', error: inLine.failed };
  const wait = async (stop: CallStop) => (stop.isFull ? waitForSlot(ctx, unit, stop) : null);
  const open = { holds: () => true, wait, inLine, beginsStep: false };
  const end = await callForStep(ctx, { ...unit, ...resolved, ...open }, control);
  return end.kind === 'waiting' ? waitForRest(db, end, { key, remainingMs: control.remainingMs }) : end;
}

/** The transition of the ladder is repeated, and held. */
const heldRevision: StepExecution = {
  kind: 'retry',
  delayMs: 1,
  error: { code: 'unavailable', message: 'the run is paused' },
};

/** A worker that was killed after the failure was stored left the step open; the call is not sent again. */
function findHeldFailure({ state, error }: StoredStep, holds: (code: ErrorCode) => boolean): Failure | null {
  if (error === null) return null;
  return state === 'in_review' || (state === 'retrying' && holds(error.code as ErrorCode)) ? error : null;
}

async function escalate(
  ctx: WorkerCtx,
  { context: { project_id, pipeline, definition }, step, key }: StepUnit,
  failed: Pick<FailedStep, 'input' | 'failure'>,
): Promise<StepEnd> {
  const place = await ctx.openForStep({
    ...key,
    ...failed,
    project_id,
    pipeline,
    capability: capabilityOf(step.definition),
    tags: step.definition.tags ?? [],
    policy: resolveEscalation(definition, step.definition),
  });
  return { kind: 'escalated', error: failed.failure, place };
}

async function readRevisionInput(db: Db, key: StepKey): Promise<JsonObject> {
  const row = await readStepRevision(db, key, key.revision);
  if (row === undefined) {
    throw new AppError(
      'not_found',
      `step ${key.step_id} of run ${key.run_id} has no revision ${key.revision}`,
    );
  }
  return row.input as JsonObject;
}
