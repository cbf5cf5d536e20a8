/**
 * Runs, steps and attempts as the wire shows them, the steps of runs counted by state, and the error for a run
 * that is not there.
 */

import { LRUCache } from 'lru-cache';
import type { DecidedRoute } from '../../contracts/decision.ts';
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { Attempt, Run, RunStep, RunSummary, StepDetail, StepRevision } from '../../contracts/run.ts';
import { kindFieldsOf } from '../../core/definition/step-settings.ts';
import { toWireAdvice, toWireAttempt } from '../../core/ladder/ladder.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { createDispatchOf, explainDispatch } from '../../core/run/dispatch.ts';
import type { AttemptRow } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import type { EscalationRow } from '../../db/escalation/escalation.ts';
import type { NewRun } from '../../db/run/run.ts';
import {
  countDefinitionSteps,
  type RunDetailRow,
  type RunListRow,
  type RunRow,
  type StepCountColumns,
} from '../../db/run/run-list.ts';
import type { RunStepRow } from '../../db/step/step.ts';
import type { StepRevisionRow } from '../../db/step/step-revision.ts';
import { AppError } from '../../errors/app-error.ts';
import { madeAt } from '../ids.ts';
import type { WebLinks } from '../web-links.ts';

function toIso(time: Date | null): string | null {
  return time?.toISOString() ?? null;
}

export function toRunSummary(row: RunListRow): RunSummary {
  return { ...fieldsOf(row), step_counts: { ...row.step_counts } };
}

function fieldsOf(row: RunRow): Omit<RunSummary, 'step_counts'> {
  return {
    run_id: row.run_id,
    job_id: row.job_id,
    pipeline: row.pipeline,
    version: row.version,
    state: row.state,
    priority: row.priority,
    budget_ceiling_usd: row.budget_ceiling_usd === null ? null : Number(row.budget_ceiling_usd),
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    reserved_usd: fromNanoUsd(BigInt(row.reserved_nano)),
    labels: row.labels,
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.rerun_of === null ? {} : { rerun_of: row.rerun_of }),
    ...parentOf(row),
    ...(row.schedule_id === null ? {} : { schedule_id: row.schedule_id }),
    created_at: row.created_at.toISOString(),
    started_at: toIso(row.started_at),
    finished_at: toIso(row.finished_at),
    ...(row.awaiting.length === 0 ? {} : { awaiting: [...row.awaiting] }),
    ...(row.follows === null ? {} : { follows: row.follows }),
  };
}

function parentOf({
  parent_run_id: run_id,
  parent_step_id: step_id,
  parent_item: item,
}: Pick<RunRow, 'parent_run_id' | 'parent_step_id' | 'parent_item'>): Pick<Run, 'parent'> {
  return run_id === null || step_id === null ? {} : { parent: { run_id, step_id, item: item ?? 0 } };
}

function linksOf(runId: string): Run['links'] {
  return {
    self: `/v1/runs/${runId}`,
    events: `/v1/runs/${runId}/events`,
  };
}

function pendingStep(definition: StepDefinition): RunStep {
  return {
    id: definition.id,
    state: 'pending',
    ...kindFieldsOf(definition),
    attempts: 0,
    revision: 0,
    cost_usd: 0,
    started_at: null,
    finished_at: null,
  };
}

function optionalFields({
  item,
  awaiting,
  item_states,
  endpoint,
  error,
  escalation_id,
  review_id,
  sub_run_id,
  reused_from,
  cached,
  skill_id,
}: RunStepRow) {
  return {
    ...(item === 0 ? {} : { item }),
    ...(awaiting === null ? {} : { awaiting }),
    ...(item_states === null ? {} : { items: { ...item_states } }),
    ...(endpoint === null ? {} : { endpoint }),
    ...(error === null ? {} : { error }),
    ...(escalation_id === null ? {} : { escalation_id }),
    ...(review_id === null ? {} : { review_id }),
    ...(sub_run_id === null ? {} : { sub_run_id }),
    ...(reused_from === null ? {} : { reused_from }),
    ...(cached === 0 ? {} : { cached }),
    ...(skill_id === null ? {} : { skill_id }),
  };
}

export function toRunStep(definition: StepDefinition, row: RunStepRow | undefined): RunStep {
  if (row === undefined) return pendingStep(definition);
  return {
    id: definition.id,
    state: row.state,
    ...kindFieldsOf(definition),
    ...optionalFields(row),
    attempts: row.attempts,
    revision: row.revision,
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    started_at: toIso(row.started_at),
    finished_at: toIso(row.finished_at),
  };
}

export function toStepRevision(row: StepRevisionRow): StepRevision {
  return {
    revision: row.revision,
    input: row.input,
    source: row.source,
    escalation_id: row.escalation_id,
    created_at: row.created_at.toISOString(),
  };
}

/** Each route once, and of each step only whether it is inline, so that a run of many steps stays short. */
function showDispatch(
  definition: PipelineDefinition,
  decided: readonly DecidedRoute[],
  show: (step: StepDefinition) => RunStep,
): Pick<Run, 'dispatch' | 'steps'> {
  const dispatchOf = createDispatchOf(definition, decided);
  return {
    ...(decided.length === 0 ? {} : { dispatch: decided.map(explainDispatch) }),
    steps: definition.steps.map((step) =>
      dispatchOf(step)?.how === 'inline' ? { ...show(step), inline: true } : show(step),
    ),
  };
}

export function toRun(row: RunDetailRow, steps: readonly RunStepRow[], web: WebLinks): Run {
  const byId = new Map(steps.map((step) => [step.step_id, step]));
  return {
    ...fieldsOf(row),
    ...(row.has_output ? { output: row.output } : {}),
    ...showDispatch(row.definition, row.dispatch, (step) => toRunStep(step, byId.get(step.id))),
    links: { ...linksOf(row.run_id), ...web.ofRun(row) },
  };
}

/**
 * A run as it is at the moment of its submission.
 * @param reused ids of steps whose results were taken from another run
 */
export function newRunView(row: NewRun, definition: PipelineDefinition, reused: readonly string[] = []): Run {
  const kept = new Set(reused);
  return {
    run_id: row.run_id,
    job_id: row.job_id,
    pipeline: row.pipeline,
    version: row.version,
    state: 'queued',
    priority: row.priority,
    budget_ceiling_usd: row.budget_ceiling_usd,
    cost_usd: 0,
    reserved_usd: 0,
    labels: row.labels,
    ...(row.rerun_of === undefined ? {} : { rerun_of: row.rerun_of }),
    created_at: new Date().toISOString(),
    started_at: null,
    finished_at: null,
    ...showDispatch(definition, row.dispatch ?? [], (step) =>
      kept.has(step.id) ? { ...pendingStep(step), state: 'reused' } : pendingStep(step),
    ),
    links: linksOf(row.run_id),
  };
}

export function toAttempt(row: AttemptRow): Attempt {
  const cost_usd = fromNanoUsd(BigInt(row.settled_nano ?? 0));
  return {
    attempt_id: row.attempt_id,
    endpoint: row.endpoint,
    state: row.state,
    ambiguity: row.ambiguity,
    started_at: row.started_at.toISOString(),
    duration_ms: row.duration_ms,
    cost_usd,
    certainty: row.certainty,
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.cached_from === null ? {} : { cached_from: row.cached_from }),
    decision:
      row.decision === null
        ? null
        : { ...row.decision, settled_usd: row.settled_nano === null ? null : cost_usd },
  };
}

export function toStepEscalation(row: EscalationRow): StepDetail['escalation'] {
  const { escalation_level, escalation_history, escalation_advice } = row;
  return {
    escalation_level,
    escalation_history: escalation_history.map(toWireAttempt),
    escalation_advice: escalation_advice.map(toWireAdvice),
  };
}

// How many steps of runs are in which state, those that have not begun included.

type Counts = StepCountColumns['step_counts'];

function withPending(begun: Counts, size: number): Counts {
  const known = Object.values(begun).reduce((sum, count) => sum + count, 0);
  return size > known ? { ...begun, pending: size - known } : begun;
}

/** How many steps a definition has, by its digest: it does not change, so each is counted once in a while. */
export type StepSizes = LRUCache<string, number>;

export function createStepSizes(): StepSizes {
  return new LRUCache({ max: 1_000 });
}

/** Counts the definitions of a page by one query. @returns the rows with the steps that have no row yet, as pending */
export async function countSteps<Row extends StepCountColumns>(
  db: Db,
  sizes: StepSizes,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const unknown = new Set(rows.map(({ digest }) => digest).filter((digest) => !sizes.has(digest)));
  const counted = unknown.size === 0 ? [] : await countDefinitionSteps(db, [...unknown]);
  for (const [digest, steps] of counted) sizes.set(digest, steps);
  return rows.map((row) => ({
    ...row,
    step_counts: withPending(row.step_counts, sizes.get(row.digest) ?? 0),
  }));
}

const dayMs = 86_400_000;
/** No run is deleted sooner. */
const leastDays = 7;

/** A run that is not there; of one that was made long ago it is said why that may be. */
export function noSuchRun(runId: string, now = Date.now()): AppError {
  const made = madeAt(runId);
  const days = made === null ? 0 : Math.floor((now - made.getTime()) / dayMs);
  const why = `; its id is ${days} days old, and runs are deleted some time after their end (RUN_RETENTION_DAYS)`;
  return new AppError('not_found', `there is no run ${runId}${days > leastDays ? why : ''}`);
}
