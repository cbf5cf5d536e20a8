/** Runs, steps and attempts as the wire shows them. */
import type { PipelineDefinition } from '../../contracts/pipeline.ts';
import type { Attempt, Run, RunStep, RunSummary, StepRevision } from '../../contracts/run.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { AttemptRow } from '../../db/attempt.ts';
import type { NewRun } from '../../db/run.ts';
import type { RunDetailRow, RunRow } from '../../db/run-list.ts';
import type { RunStepRow } from '../../db/step.ts';
import type { StepRevisionRow } from '../../db/step-revision.ts';

const toIso = (time: Date | null): string | null => time?.toISOString() ?? null;

export const toRunSummary = (row: RunRow): RunSummary => ({
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
  created_at: row.created_at.toISOString(),
  started_at: toIso(row.started_at),
  finished_at: toIso(row.finished_at),
});

const linksOf = (runId: string): Run['links'] => ({
  self: `/v1/runs/${runId}`,
  events: `/v1/runs/${runId}/events`,
});

const pendingStep = ({ id, capability }: PipelineDefinition['steps'][number]): RunStep => ({
  id,
  state: 'pending',
  capability,
  attempts: 0,
  revision: 0,
  cost_usd: 0,
  started_at: null,
  finished_at: null,
});

export const toRunStep = (
  definition: PipelineDefinition['steps'][number],
  row: RunStepRow | undefined,
): RunStep => {
  if (row === undefined) return pendingStep(definition);
  return {
    id: definition.id,
    state: row.state,
    capability: definition.capability,
    ...(row.endpoint === null ? {} : { endpoint: row.endpoint }),
    attempts: row.attempts,
    revision: row.revision,
    cost_usd: fromNanoUsd(BigInt(row.cost_nano)),
    started_at: toIso(row.started_at),
    finished_at: toIso(row.finished_at),
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.escalation_id === null ? {} : { escalation_id: row.escalation_id }),
    ...(row.review_id === null ? {} : { review_id: row.review_id }),
    ...(row.skill_id === null ? {} : { skill_id: row.skill_id }),
  };
};

export const toStepRevision = (row: StepRevisionRow): StepRevision => ({
  revision: row.revision,
  input: row.input,
  source: row.source,
  escalation_id: row.escalation_id,
  created_at: row.created_at.toISOString(),
});

export const toRun = (row: RunDetailRow, steps: readonly RunStepRow[]): Run => {
  const byId = new Map(steps.map((step) => [step.step_id, step]));
  return {
    ...toRunSummary(row),
    ...(steps.some(({ state }) => state === 'in_review') ? { awaiting: ['review'] } : {}),
    ...(row.has_output ? { output: row.output } : {}),
    steps: row.definition.steps.map((step) => toRunStep(step, byId.get(step.id))),
    links: linksOf(row.run_id),
  };
};

/** A run as it is at the moment of its submission. */
export const newRunView = (row: NewRun, definition: PipelineDefinition): Run => ({
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
  created_at: new Date().toISOString(),
  started_at: null,
  finished_at: null,
  steps: definition.steps.map(pendingStep),
  links: linksOf(row.run_id),
});

export const toAttempt = (row: AttemptRow): Attempt => {
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
    decision: { ...row.decision, settled_usd: row.settled_nano === null ? null : cost_usd },
  };
};
