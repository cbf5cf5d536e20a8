/** Runs, steps and attempts as the wire shows them. */
import type { DecidedRoute } from '../../contracts/dispatch.ts';
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { Attempt, Run, RunStep, RunSummary, StepDetail, StepRevision } from '../../contracts/run.ts';
import { kindFieldsOf } from '../../core/definition/step-kind.ts';
import { toWireAdvice, toWireAttempt } from '../../core/ladder/carry-lists.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { createDispatchOf, explainDispatch } from '../../core/run/step-dispatch.ts';
import type { AttemptRow } from '../../db/attempt/attempt.ts';
import type { EscalationRow } from '../../db/escalation/escalation.ts';
import type { NewRun } from '../../db/run/run.ts';
import type { RunDetailRow, RunListRow, RunRow } from '../../db/run/run-list.ts';
import type { RunStepRow } from '../../db/step/step.ts';
import type { StepRevisionRow } from '../../db/step/step-revision.ts';
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
