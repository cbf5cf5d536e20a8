/** Runs, their steps and attempts, as submitted and as shown. */
import { z } from 'zod';
import { Decision } from './decision.ts';
import { PipelineDefinition } from './pipeline.ts';
import {
  CapabilityName,
  Failure,
  Instant,
  Json,
  JsonObject,
  listOf,
  PipelineName,
  Priority,
  StepId,
  Usd,
  VersionText,
} from './primitives.ts';

export const RunState = z
  .enum(['queued', 'running', 'cancelling', 'succeeded', 'failed', 'cancelled'])
  .meta({ id: 'RunState' });
export type RunState = z.infer<typeof RunState>;

export const terminalRunStates: ReadonlySet<RunState> = new Set(['succeeded', 'failed', 'cancelled']);

export const StepState = z
  .enum([
    'pending',
    'ready',
    'running',
    'retrying',
    'in_review',
    'succeeded',
    'failed',
    'unknown',
    'skipped',
    'cancelled',
  ])
  .meta({ id: 'StepState' });
export type StepState = z.infer<typeof StepState>;

/** Body of `POST /v1/runs`: a stored pipeline by name, or a definition; a job or the id of one. */
export const RunRequest = z
  .strictObject({
    pipeline: PipelineName.optional(),
    version: VersionText.optional(),
    definition: PipelineDefinition.optional(),
    job: JsonObject.optional(),
    job_id: z.string().max(128).optional(),
    priority: Priority.optional(),
    budget_ceiling_usd: Usd.optional(),
    labels: z.record(z.string().max(64), z.string().max(256)).optional(),
  })
  .refine((body) => (body.pipeline === undefined) !== (body.definition === undefined), {
    path: ['pipeline'],
    error: 'give either pipeline (the name of a stored one) or definition, not both',
  })
  .refine((body) => body.job === undefined || body.job_id === undefined, {
    path: ['job'],
    error: 'give either job or job_id, not both',
  })
  .meta({ id: 'RunRequest' });
export type RunRequest = z.infer<typeof RunRequest>;

export const RunStep = z
  .strictObject({
    id: StepId,
    state: StepState,
    capability: CapabilityName,
    endpoint: z.string().optional(),
    attempts: z.number().int(),
    revision: z.number().int(),
    cost_usd: z.number(),
    started_at: Instant.nullable(),
    finished_at: Instant.nullable(),
    error: Failure.optional(),
    /** The last ladder of the step. */
    escalation_id: z.string().optional(),
    /** The review that it waits for, or the last one. */
    review_id: z.string().optional(),
    /** The skill that made it succeed without a model. */
    skill_id: z.string().optional(),
  })
  .meta({ id: 'RunStep' });
export type RunStep = z.infer<typeof RunStep>;

export const RunLinks = z.strictObject({
  self: z.string(),
  events: z.string(),
  console: z.string().optional(),
  temporal: z.string().optional(),
});

const runFields = {
  run_id: z.string(),
  job_id: z.string(),
  pipeline: PipelineName,
  version: VersionText,
  state: RunState,
  priority: Priority,
  budget_ceiling_usd: z.number().nullable(),
  cost_usd: z.number(),
  reserved_usd: z.number(),
  labels: z.record(z.string(), z.string()),
  error: Failure.optional(),
  created_at: Instant,
  started_at: Instant.nullable(),
  finished_at: Instant.nullable(),
};

export const RunSummary = z.strictObject(runFields).meta({ id: 'RunSummary' });
export type RunSummary = z.infer<typeof RunSummary>;
export const RunList = listOf(RunSummary).meta({ id: 'RunList' });

export const Run = z
  .strictObject({
    ...runFields,
    /** What some of its steps wait for: `review`. */
    awaiting: z.array(z.string()).optional(),
    output: Json.optional(),
    steps: z.array(RunStep),
    links: RunLinks,
  })
  .meta({ id: 'Run' });
export type Run = z.infer<typeof Run>;

/** What is known of one delivery to an instance. */
export const Ambiguity = z
  .enum(['not_sent', 'rejected', 'overloaded', 'ambiguous', 'answered'])
  .meta({ id: 'Ambiguity' });
export type Ambiguity = z.infer<typeof Ambiguity>;

export const AttemptState = z
  .enum(['reserved', 'dispatched', 'settled', 'released', 'lost'])
  .meta({ id: 'AttemptState' });
export type AttemptState = z.infer<typeof AttemptState>;

export const Attempt = z
  .strictObject({
    attempt_id: z.string(),
    endpoint: z.string(),
    state: AttemptState,
    ambiguity: Ambiguity.nullable(),
    started_at: Instant,
    duration_ms: z.number().nullable(),
    cost_usd: z.number(),
    certainty: z.enum(['exact', 'estimated']).nullable(),
    error: Failure.optional(),
    decision: Decision,
  })
  .meta({ id: 'Attempt' });
export type Attempt = z.infer<typeof Attempt>;

/** A corrected input of a step. */
export const StepRevision = z
  .strictObject({
    /** From 1 on; 0 is what the definition gives. */
    revision: z.number().int(),
    input: Json,
    /** `repair`, the id of a skill, the label of a level, or `review:<id>`. */
    source: z.string(),
    escalation_id: z.string(),
    created_at: Instant,
  })
  .meta({ id: 'StepRevision' });
export type StepRevision = z.infer<typeof StepRevision>;

export const StepDetail = z
  .strictObject({
    ...RunStep.shape,
    run_id: z.string(),
    depends_on: z.array(StepId),
    /** Of the first execution, as the definition gives it. */
    input: Json.optional(),
    /** Oldest first; absent when its input was never corrected. */
    revisions: z.array(StepRevision).optional(),
    output: Json.optional(),
    attempt_list: z.array(Attempt),
  })
  .meta({ id: 'StepDetail' });
export type StepDetail = z.infer<typeof StepDetail>;

export const CancelRequest = z
  .strictObject({ reason: z.string().max(1_000).optional() })
  .meta({ id: 'CancelRequest' });
