/** Steps of a run, their items and attempts, and the queries for them. */

import { z } from 'zod';
import { Decision, StepDispatch } from './decision.ts';
import { EscalationAdvice, EscalationAttempt, EscalationLevel, LadderMove } from './escalation.ts';
import { mostItems } from './limits.ts';
import { stepKindFields } from './pipeline-answers.ts';
import { EventKey, Failure, Instant, Json, ListQuery, listOf, StepId, VersionText } from './primitives.ts';
import { AsDecided } from './skill.ts';

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

/**
 * What a step waits for while it occupies no slot: a person, budget, an instance, a time, a child run, a free slot, its
 * next attempt, an answer that comes later, an outside event.
 */
export const Awaiting = z
  .enum(['review', 'budget', 'capability', 'time', 'run', 'slot', 'retry', 'callback', 'event'])
  .meta({ id: 'Awaiting' });
export type Awaiting = z.infer<typeof Awaiting>;

export const RunStep = z
  .strictObject({
    id: StepId,
    /** The item of a step with `for_each`, or the round of a step with `repeat`, from 1 on; absent for the step as a whole. */
    item: z.number().int().optional(),
    state: StepState,
    ...stepKindFields,
    /** The version that the alias of `pipeline` named; absent before it was looked up, and without an alias. */
    pipeline_version: VersionText.optional(),
    /** The step was planned as inline; absent for an item. A call that takes too long continues in the queue. */
    inline: z.literal(true).optional(),
    /** Present while the step is waiting, and in a review that asks for money. */
    awaiting: Awaiting.optional(),
    /** The budget of a key, label, capability or user that it waits for: `label:team=ads by month`. */
    budget: z.string().optional(),
    /** Items of a step with `for_each`, or the rounds so far of a step with `repeat`, counted by state. */
    items: z.record(z.string(), z.number().int()).optional(),
    /** The most rounds of a step with `repeat`, whose items are its rounds; absent for an item. */
    max_rounds: z.number().int().optional(),
    endpoint: z.string().optional(),
    attempts: z.number().int(),
    revision: z.number().int(),
    cost_usd: z.number(),
    started_at: Instant.nullable(),
    finished_at: Instant.nullable(),
    error: Failure.optional(),
    /** The last ladder of the step. */
    escalation_id: z.string().optional(),
    /** The review that the step waits for, or its last one. */
    review_id: z.string().optional(),
    /** The child run of a step with `pipeline`. */
    sub_run_id: z.string().optional(),
    /** The run that the result was copied from. */
    reused_from: z.string().optional(),
    /** Number of cached results, counted over the items if there are any; absent for none. */
    cached: z.number().int().optional(),
    /** The skill that corrected the step without a model. */
    skill_id: z.string().optional(),
    /** The decisions that this skill follows. */
    as_decided: AsDecided.optional(),
  })
  .meta({ id: 'RunStep' });
export type RunStep = z.infer<typeof RunStep>;

/** An item in the list of a step's items. */
export const RunStepItem = z
  .strictObject({
    ...RunStep.shape,
    /** The output of an item that succeeded; an output above 64 KiB is only on the item's own page. */
    output: Json.optional(),
  })
  .meta({ id: 'RunStepItem' });
export type RunStepItem = z.infer<typeof RunStepItem>;

export const RunStepList = listOf(RunStepItem).meta({ id: 'RunStepList' });

/** The known outcome of one attempt at an instance. */
export const Ambiguity = z
  .enum(['not_sent', 'rejected', 'overloaded', 'ambiguous', 'answered'])
  .meta({ id: 'Ambiguity' });
export type Ambiguity = z.infer<typeof Ambiguity>;

export const AttemptState = z
  .enum(['reserved', 'dispatched', 'settled', 'released', 'lost', 'cached'])
  .meta({ id: 'AttemptState' });
export type AttemptState = z.infer<typeof AttemptState>;

/** The call that produced the cached result. */
export const CachedFrom = z
  .strictObject({
    run_id: z.string(),
    step_id: StepId,
    /** Absent for a step without items. */
    item: z.number().int().optional(),
    attempt_id: z.string(),
    /** The original cost of the call. */
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
    /** For the state `cached`: no instance was called. */
    cached_from: CachedFrom.optional(),
    /** Null: the decision has been deleted. */
    decision: Decision.nullable(),
  })
  .meta({ id: 'Attempt' });
export type Attempt = z.infer<typeof Attempt>;

/** A corrected input of a step. */
export const StepRevision = z
  .strictObject({
    /** From 1 on; 0 is the input from the definition. */
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
    /** Of a step in the state `waiting`. */
    open_wait: z
      .strictObject({
        since: Instant,
        /** The latest end of the wait; null: it has no limit. */
        until: Instant.nullable(),
        /** Of the outside event that it waits for; null: an event without a key. Absent for other waits. */
        event_key: EventKey.nullable().optional(),
      })
      .optional(),
    /** The planned dispatch, and its reason; absent for a step without calls. */
    dispatch: StepDispatch.optional(),
    /** The input of the first execution, from the definition. */
    input: Json.optional(),
    /** Oldest first; absent when the input was never corrected. */
    revisions: z.array(StepRevision).optional(),
    /** The state of its last ladder, with its attempts and advice, oldest first. */
    escalation: z
      .strictObject({
        escalation_level: EscalationLevel,
        escalation_history: z.array(EscalationAttempt),
        escalation_advice: z.array(EscalationAdvice),
        /** Its transitions, oldest first; empty once the run's log has been deleted. */
        moves: z.array(LadderMove),
        /** The ladder with an equal failure that it waited for. */
        leader: z.strictObject({ escalation_id: z.string(), run_id: z.string().optional() }).optional(),
      })
      .optional(),
    /** For a step with `for_each` as a whole: a page of its items' outputs, in item order; null for no output. */
    output: Json.optional(),
    /** The next page of that list; null after its last item, absent where `output` is not such a list. */
    next_cursor: z.string().nullable().optional(),
    /** All attempts, oldest first; in a run's list of steps, their number. */
    attempts: z.array(Attempt),
  })
  .meta({ id: 'StepDetail' });
export type StepDetail = z.infer<typeof StepDetail>;

/** `limit` and `cursor` page the outputs of a step's items. */
export const StepQuery = ListQuery.extend({
  item: z.coerce.number().int().min(0).max(mostItems).default(0).meta({
    description: 'From 1 on; 0 is the step as a whole.',
  }),
}).strict();
export type StepQuery = z.infer<typeof StepQuery>;

export const ItemQuery = ListQuery.extend({
  state: StepState.optional(),
  output: z.literal('none').optional().meta({ description: 'none: without the outputs of the items' }),
}).strict();
export type ItemQuery = z.infer<typeof ItemQuery>;
