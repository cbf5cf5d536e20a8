/**
 * Ends a run: its output from the stored results, the steps that never began, one closing event. Its workflow requests
 * it (closeRun); a run whose workflow will not is closed for it (closeLostRun).
 */

import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Failure, Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { CancelRequest } from '@capstan/core/contracts/run-control';
import {
  chooseReferences,
  evaluatePart,
  largestOutput,
  mentionsOf,
  mentionWhole,
  partsOfOutput,
  referTo,
  tooLargeValue,
} from '@capstan/core/expression/large-outputs';
import { Meter, workLimits } from '@capstan/core/expression/meter';
import type { CompiledTemplate } from '@capstan/core/expression/template';
import { writeJson } from '@capstan/core/json/text';
import type { RunOutcome } from '@capstan/core/run/machine';
import { listLastSteps } from '@capstan/core/run/step-rules';
import type { Telemetry } from '@capstan/core/telemetry/telemetry';
import { madeAtMs } from '@capstan/core/telemetry/trace-context';
import type { Ctx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import { cancelRunEscalations } from '../../db/escalation/escalation.ts';
import { cancelRunReviews } from '../../db/review/review-delivery.ts';
import { finishRun, listOpenSteps } from '../../db/run/run.ts';
import { requestCancelOfChildren } from '../../db/run/run-control.ts';
import type { RunContext } from '../../parts/definitions/run-context.ts';
import { evaluateInRun } from '../run-data/evaluation.ts';
import { endRunSpan } from '../telemetry/run-spans.ts';

export interface RunClosing {
  readonly run_id: string;
  readonly outcome: RunOutcome;
  readonly error: Failure | null;
  /** A step escalated or waited: its open ladder and its open review are closed. */
  readonly has_waited?: boolean;
}

export type CloseCtx = Pick<Ctx, 'db' | 'contexts' | 'results' | 'telemetry'>;

export type ClosedRun = Pick<RunClosing, 'run_id' | 'outcome' | 'error'>;

export type CloseRun = (closing: RunClosing) => Promise<ClosedRun>;

/** @returns the end of the run: if the output cannot be evaluated, a success becomes a failure */
export async function closeRun(ctx: CloseCtx, closing: RunClosing): Promise<ClosedRun> {
  return (await close(ctx, closing, false)).end;
}

/** @param is_whole a run with a step that has begun and not ended stays open */
async function close(
  ctx: CloseCtx,
  closing: RunClosing,
  is_whole: boolean,
): Promise<{ readonly end: ClosedRun; readonly isFirst: boolean }> {
  const { db, contexts, telemetry } = ctx;
  const context = await contexts.open(closing.run_id);
  const output = closing.outcome === 'succeeded' ? await evaluateOutput(ctx, context) : null;
  const { run_id, outcome, error } = closing;
  const end =
    output?.error === undefined
      ? { run_id, outcome, error }
      : { run_id, outcome: 'failed' as const, error: output.error };
  const isFirst = await finishRun(db, {
    run_id: closing.run_id,
    state: end.outcome,
    output: output?.value,
    error: end.error,
    step_ids: end.outcome === 'succeeded' ? [] : context.definition.steps.map(({ id }) => id),
    is_whole: is_whole && end.outcome === 'succeeded',
  });
  if (isFirst) tellEnd(telemetry, context, end);
  if (closing.has_waited === true) {
    await cancelRunReviews(db, closing.run_id);
    await cancelRunEscalations(db, closing.run_id);
  }
  return { end, isFirst };
}

/**
 * Closes a run as its workflow reports. A success needs an end of every step that has begun. Only an activity that was
 * completed in Temporal, past Capstan, leaves one without: the run has failed.
 */
export async function closeReported(ctx: CloseCtx, closing: RunClosing): Promise<ClosedRun> {
  const { end, isFirst } = await close(ctx, closing, closing.outcome === 'succeeded');
  if (isFirst || end.outcome !== 'succeeded') return end;
  const open = await listOpenSteps(ctx.db, closing.run_id);
  if (open.length === 0) return end;
  const steps = `${open.slice(0, 3).join(', ')}${open.length > 3 ? ` and ${open.length - 3} more` : ''}`;
  const message = `completed in Temporal by hand, without a result: ${steps}`;
  return closeRun(ctx, { ...closing, outcome: 'failed', error: { code: 'run_terminated', message } });
}

function tellEnd(telemetry: Telemetry, context: RunContext, { outcome, error }: ClosedRun): void {
  const { metrics } = telemetry;
  const { run_id, pipeline } = context;
  metrics.add('runs_total', { pipeline, state: outcome });
  metrics.observe('run_duration_seconds', { pipeline }, Math.max(0, Date.now() - madeAtMs(run_id)) / 1_000);
  endRunSpan(telemetry, context, { state: outcome, error: error?.code ?? null });
}

interface RunResult {
  readonly value?: Json;
  readonly error?: Failure;
}

/** The most bytes of all results that an output mentions: they are in memory together. */
const largestSources = 128 * 1_048_576;

/** The definition's `output`, otherwise the outputs of the steps that no other step depends on, by id. */
async function evaluateOutput(ctx: CloseCtx, context: RunContext): Promise<RunResult> {
  const { output } = context.compiled;
  if (output === null) return gatherOutputs(ctx, context);
  const { value, error } = await evaluateSized(ctx, context, { template: output });
  const result =
    value === tooLargeValue
      ? await evaluateParts(ctx, context, output)
      : { ...(value === undefined ? {} : { value }), ...(error === undefined ? {} : { error }) };
  if (result.error === undefined) return result;
  const { code, message } = result.error;
  return { error: { code, message: `output: ${message}` } };
}

async function gatherOutputs({ results }: CloseCtx, { run_id, compiled }: RunContext): Promise<RunResult> {
  const stepIds = listLastSteps(compiled);
  const sizes = await results.sizesOf(run_id, stepIds);
  const parts = stepIds.map((name) => ({ name, bytes: sizes.get(name) ?? 0 }));
  const referred = chooseReferences(parts);
  const read = stepIds.filter((id) => !referred.has(id));
  const { steps, failure } = await results.scopeOf(run_id, mentionWhole(read));
  if (failure !== null) return { error: failure };
  const outputs = parts.map(({ name, bytes }) => [
    name,
    referred.has(name) ? referTo({ bytes, run_id, step: name }) : (steps[name]?.output ?? null),
  ]);
  return { value: Object.fromEntries(outputs) };
}

interface SizedValue {
  readonly value?: Json | typeof tooLargeValue;
  readonly error?: Failure;
  readonly bytes: number;
  /** The step that most of it comes from. */
  readonly step: string | null;
}

interface SizedTemplate {
  readonly template: CompiledTemplate;
  readonly meter?: Meter;
}

/** Evaluates an output, or a part of it, unless it is too large. */
async function evaluateSized(
  { results }: CloseCtx,
  context: RunContext,
  { template, meter = new Meter(workLimits.run) }: SizedTemplate,
): Promise<SizedValue> {
  const read = mentionsOf(template).filter(({ reads_output }) => reads_output);
  const sizes = await results.sizesOf(
    context.run_id,
    read.map(({ step_id }) => step_id),
  );
  const [largest] = [...sizes].sort(([, a], [, b]) => b - a);
  const sources = { bytes: sum(sizes.values()), step: largest?.[0] ?? null };
  const inMemory = sum([...sizes.values()].map((bytes) => Math.min(bytes, largestOutput)));
  if (inMemory > largestSources) return { ...sources, value: tooLargeValue };
  const evaluated = await evaluateInRun({ context, results }, template, evaluatePart, { meter });
  if ('error' in evaluated) {
    const isTooLarge = evaluated.error.code === 'output_too_large';
    return isTooLarge ? { ...sources, value: tooLargeValue } : { ...sources, ...evaluated };
  }
  const { value } = evaluated;
  if (value === tooLargeValue) return { ...sources, value };
  const bytes = Buffer.byteLength(writeJson(value));
  return { ...sources, bytes, value: bytes > largestOutput ? tooLargeValue : value };
}

function sum(numbers: Iterable<number>): number {
  let all = 0;
  for (const number of numbers) all += number;
  return all;
}

/** O1 for an output that is too large as a whole: those of its parts that are too large are given by reference. */
async function evaluateParts(
  ctx: CloseCtx,
  context: RunContext,
  output: CompiledTemplate,
): Promise<RunResult> {
  const { run_id } = context;
  const all = new Meter(workLimits.output);
  const parts = new Map<string, SizedValue>();
  for (const [name, template] of partsOfOutput(output)) {
    const meter = all.part(workLimits.run);
    const part = await evaluateSized(ctx, context, { template, meter });
    all.count(meter);
    if (part.error !== undefined) return { error: part.error };
    parts.set(name, part);
    const kept = [...parts].flatMap(([key, { value, bytes }]) =>
      value === tooLargeValue ? [] : [{ name: key, bytes }],
    );
    for (const key of chooseReferences(kept))
      parts.set(key, { ...(parts.get(key) as SizedValue), value: tooLargeValue });
  }
  const shown = [...parts].map(([name, { value, bytes, step }]) => [
    name,
    value === tooLargeValue ? referTo({ bytes, run_id, step }) : (value ?? null),
  ]);
  const value: JsonObject = Object.fromEntries(shown);
  return { value: output.root.kind === 'object' ? value : (value[''] ?? null) };
}

// Closes a run whose workflow will not: it was ended from outside, or never started. Its open work ends with it; its
// child runs are asked to cancel.

export interface LostRun {
  readonly run_id: string;
  readonly definition: PipelineDefinition;
}

export interface LostEnd {
  readonly state: 'failed' | 'cancelled';
  readonly error: Failure;
  /** How its child runs are cancelled. */
  readonly mode: CancelRequest['mode'];
}

/** A run that has ended does not change. */
export function closeLostRun(
  db: Db,
  { run_id, definition }: LostRun,
  { state, error, mode }: LostEnd,
): Promise<void> {
  return db.transaction(async (trx) => {
    const step_ids = definition.steps.map(({ id }) => id);
    await finishRun(trx, { run_id, state, output: undefined, error, step_ids });
    await cancelRunReviews(trx, run_id);
    await cancelRunEscalations(trx, run_id);
    await requestCancelOfChildren(trx, run_id, { reason: `its parent ${run_id} has ended`, mode });
  });
}
