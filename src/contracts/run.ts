/** Runs, their steps and attempts, as submitted and as shown. */

import { z } from 'zod';
import { Decision, RouteDispatch, StepDispatch } from './decision.ts';
import { EscalationAdvice, EscalationAttempt, EscalationLevel } from './escalation.ts';
import { PipelineDefinition, stepKindFields } from './pipeline.ts';
import {
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
import { checkAll, needsOneOf, notBoth, sayAll } from './rules.ts';

export const RunState = z
  .enum(['queued', 'running', 'paused', 'cancelling', 'succeeded', 'failed', 'cancelled'])
  .meta({ id: 'RunState' });
export type RunState = z.infer<typeof RunState>;

export const terminalRunStates: ReadonlySet<RunState> = new Set(['succeeded', 'failed', 'cancelled']);

export const StepState = z
  .enum([
    'pending',
    'ready',
    'running',
    'retrying',
    'waiting',
    'in_review',
    'succeeded',
    'failed',
    'unknown',
    'skipped',
    'cancelled',
    'reused',
  ])
  .meta({ id: 'StepState' });
export type StepState = z.infer<typeof StepState>;

/** What a step waits for without taking room: a person, money, an instance, a moment, a run of its own. */
export const Awaiting = z.enum(['review', 'budget', 'capability', 'time', 'run']).meta({ id: 'Awaiting' });
export type Awaiting = z.infer<typeof Awaiting>;

const runRules = [
  needsOneOf(['pipeline', 'definition']),
  notBoth('pipeline', 'definition'),
  notBoth('alias', 'version'),
  notBoth('job', 'job_id'),
];

/** Body of `POST /v1/runs`: a stored pipeline by name, or a definition; a job or the id of one. */
export const RunRequest = z
  .strictObject({
    pipeline: PipelineName.optional(),
    version: VersionText.optional(),
    /** Instead of a version. Default: latest. */
    alias: PipelineName.optional(),
    definition: PipelineDefinition.optional(),
    job: JsonObject.optional(),
    job_id: z.string().max(128).optional(),
    priority: Priority.optional(),
    budget_ceiling_usd: Usd.optional(),
    labels: z.record(z.string().max(64), z.string().max(256)).optional(),
  })
  .check(checkAll(runRules))
  .meta({ id: 'RunRequest', ...sayAll(runRules) });
export type RunRequest = z.infer<typeof RunRequest>;

export const RunStep = z
  .strictObject({
    id: StepId,
    /** Which item of a step with `for_each` it is; absent for the step as a whole. */
    item: z.number().int().optional(),
    state: StepState,
    ...stepKindFields,
    /** Planned without a queue in between; absent for an item. What turns out long goes on by the queue. */
    inline: z.literal(true).optional(),
    /** While it is waiting. */
    awaiting: Awaiting.optional(),
    /** How many items of a step with `for_each` are in which state. */
    items: z.record(z.string(), z.number().int()).optional(),
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
    /** The run that a step with `pipeline` has started. */
    sub_run_id: z.string().optional(),
    /** The run that the result was taken from. */
    reused_from: z.string().optional(),
    /** How many of its results were taken from equal calls, of its items where it has some; absent for none. */
    cached: z.number().int().optional(),
    /** The skill that made it succeed without a model. */
    skill_id: z.string().optional(),
  })
  .meta({ id: 'RunStep' });
export type RunStep = z.infer<typeof RunStep>;

/** An item of a step in the list of them. */
export const RunStepItem = z
  .strictObject({
    ...RunStep.shape,
    /** The output of an item that succeeded; a larger one than 64 KiB is on the item's own page alone. */
    output: Json.optional(),
  })
  .meta({ id: 'RunStepItem' });
export type RunStepItem = z.infer<typeof RunStepItem>;

export const RunStepList = listOf(RunStepItem).meta({ id: 'RunStepList' });

const RunLinks = z.strictObject({
  self: z.string(),
  events: z.string(),
  console: z.string().optional(),
  temporal: z.string().optional(),
});

/**
 * A ladder with the same failure as one of the run's own, which waits for its end before it asks anybody; `review_id`
 * while a person is asked there.
 */
export const RunFollows = z
  .strictObject({
    escalation_id: z.string(),
    run_id: z.string().optional(),
    step_id: StepId.optional(),
    review_id: z.string().optional(),
  })
  .meta({ id: 'RunFollows' });
export type RunFollows = z.infer<typeof RunFollows>;

/** How many steps are in which state; a step with `for_each` is one. */
export const StepCounts = z.partialRecord(StepState, z.number().int());

/** Somebody who asked for something: a key or a person. */
const Actor = z.strictObject({
  id: z.string(),
  /** As the key, or the person, is called; absent when it is not known any more. */
  name: z.string().optional(),
});

/** The cancel that was asked for. */
const RunCancel = z.strictObject({
  /** Absent: Capstan itself, because the run or the step that started it has ended. */
  by: Actor.optional(),
  reason: z.string().optional(),
  mode: z.enum(['graceful', 'terminate']),
  requested_at: Instant,
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
  /** The run that this one repeats. */
  rerun_of: z.string().optional(),
  /** The step that started it. */
  parent: z.strictObject({ run_id: z.string(), step_id: StepId, item: z.number().int() }).optional(),
  schedule_id: z.string().optional(),
  created_at: Instant,
  started_at: Instant.nullable(),
  finished_at: Instant.nullable(),
  /** What some of its steps, and of the runs below it, wait for, each once. */
  awaiting: z.array(Awaiting).optional(),
  follows: RunFollows.optional(),
};

export const RunSummary = z
  .strictObject({
    ...runFields,
    step_counts: StepCounts,
    /** How many items of its steps ended in which state; absent unless it succeeded and has items. */
    item_counts: StepCounts.optional(),
  })
  .meta({ id: 'RunSummary' });
export type RunSummary = z.infer<typeof RunSummary>;
export const RunList = listOf(RunSummary).meta({ id: 'RunList' });

export const Run = z
  .strictObject({
    ...runFields,
    /** Who asked for it; absent when a step or a schedule has started it. */
    started_by: Actor.optional(),
    cancel: RunCancel.optional(),
    output: Json.optional(),
    /** How its steps are carried out that leave it open, as it was decided when the run was taken; absent when none does. */
    dispatch: z.array(RouteDispatch).optional(),
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
  .enum(['reserved', 'dispatched', 'settled', 'released', 'lost', 'cached'])
  .meta({ id: 'AttemptState' });
export type AttemptState = z.infer<typeof AttemptState>;

/** The call whose result was taken. */
export const CachedFrom = z
  .strictObject({
    run_id: z.string(),
    step_id: StepId,
    /** Absent for a step without items. */
    item: z.number().int().optional(),
    attempt_id: z.string(),
    /** What it had cost. */
    saved_usd: z.number(),
  })
  .meta({ id: 'CachedFrom' });
export type CachedFrom = z.infer<typeof CachedFrom>;

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
    /** Of the state `cached`: nobody was called. */
    cached_from: CachedFrom.optional(),
    /** Null: it is no longer kept. */
    decision: Decision.nullable(),
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

const { attempts: _count, inline: _how, ...stepFields } = RunStep.shape;

export const StepDetail = z
  .strictObject({
    ...stepFields,
    run_id: z.string(),
    depends_on: z.array(StepId),
    /** How it was planned to be carried out, and why; absent for a step that calls nobody. */
    dispatch: StepDispatch.optional(),
    /** The input of the first execution, as the definition gives it. */
    input: Json.optional(),
    /** Oldest first; absent when its input was never corrected. */
    revisions: z.array(StepRevision).optional(),
    /** Where its last ladder stands, and what was tried and advised there, oldest first. */
    escalation: z
      .strictObject({
        escalation_level: EscalationLevel,
        escalation_history: z.array(EscalationAttempt),
        escalation_advice: z.array(EscalationAdvice),
      })
      .optional(),
    /** Of a step with `for_each` as a whole: a page of what its items have yielded, in their order; null for nothing. */
    output: Json.optional(),
    /** Where that list goes on; null after its last item, absent where `output` is no such list. */
    next_cursor: z.string().nullable().optional(),
    /** Every one of them, oldest first; in a run's list of steps it is their number. */
    attempts: z.array(Attempt),
  })
  .meta({ id: 'StepDetail' });
export type StepDetail = z.infer<typeof StepDetail>;
