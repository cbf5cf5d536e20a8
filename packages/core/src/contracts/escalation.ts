/**
 * The escalation ladder on the wire. `EscalationAttempt`, `EscalationAdvice` and the bodies of `/execute` and
 * `/advise` are the specification's: unknown fields are ignored, and both lists only grow.
 */
import { z } from 'zod';
import { Failure, Instant, Json, JsonObject, StepId, Usd } from './primitives.ts';
import { Skill } from './skill.ts';

/** 0 static template, 1 to 4 models, 5 a person. */
export const EscalationLevel = z.number().int().min(0).max(5).meta({ id: 'EscalationLevel' });

const JobType = z.string().min(1).max(128);
const Signals = z.array(z.string().min(1).max(256)).max(64);

export const EscalationAttempt = z
  .object({
    level: EscalationLevel,
    label: z.string(),
    /** Unix time in seconds. */
    attempted_at: z.number().nonnegative(),
    error: z.string(),
  })
  .meta({ id: 'EscalationAttempt' });
export type EscalationAttempt = z.infer<typeof EscalationAttempt>;

export const EscalationAdvice = z
  .object({
    from_level: EscalationLevel,
    label: z.string(),
    instructions: z.string(),
    reasoning: z.string().optional(),
    suggested_executor_level: EscalationLevel.optional(),
  })
  .meta({ id: 'EscalationAdvice' });
export type EscalationAdvice = z.infer<typeof EscalationAdvice>;

const History = z.array(EscalationAttempt).max(1_000);
const AdviceList = z.array(EscalationAdvice).max(1_000);

/** One transition of a step's ladder, with the cost of its calls: those of its model, and of the step that it repeats. */
export const LadderMove = z
  .strictObject({
    /** `executed`, `advised`, `followed` (went back to use what another ladder has learnt), `decided`, or the way it ended. */
    kind: z.string(),
    level: EscalationLevel,
    /** The end of its calls, such as `succeeded`, `failed`, `advised`. */
    outcome: z.string().optional(),
    /** The decision of a person. */
    action: z.string().optional(),
    review_id: z.string().optional(),
    /** When its first call began; absent for a move without calls. */
    began_at: Instant.optional(),
    at: Instant,
    cost_usd: z.number(),
    /** The instance of its model. */
    endpoint: z.string().optional(),
    /** Corrected inputs that it ran. */
    revisions: z.array(z.number().int()),
  })
  .meta({ id: 'LadderMove' });
export type LadderMove = z.infer<typeof LadderMove>;

/** The model of the current attempt; capability and model are null at level 0 and for a person. */
export const ModelSpec = z
  .strictObject({
    level: EscalationLevel,
    label: z.string(),
    capability: z.string().nullable(),
    /** The provider's name of the model; null before its first answer. */
    model: z.string().nullable(),
  })
  .meta({ id: 'ModelSpec' });
export type ModelSpec = z.infer<typeof ModelSpec>;

/** Body of `POST /execute`. The optional fields after the specification's are ours. */
export const ExecuteRequest = z
  .object({
    level: EscalationLevel,
    job_type: JobType,
    prompt: z.string().min(1),
    context: Json.optional(),
    escalation_history: History.default([]),
    escalation_advice: AdviceList.default([]),
    repo_context: z.string().optional(),
    signals: Signals.default([]),
    /** Maximum cost of the execution and the advice that it includes. */
    max_usd: Usd.optional(),
    /** JSON Schema that a result must match. */
    result_schema: JsonObject.optional(),
  })
  .meta({ id: 'ExecuteRequest' });
export type ExecuteRequest = z.infer<typeof ExecuteRequest>;

export const ExecuteAnswer = z
  .strictObject({
    success: z.boolean(),
    /** Null on failure. */
    result: Json,
    error: z.string().optional(),
    /** The failed execution, with its own error even if no level is left: append it to `escalation_history`. */
    attempt: EscalationAttempt.optional(),
    /** The level of the next execution, with the advice; 5 = a person. */
    new_level: EscalationLevel.optional(),
    advice: EscalationAdvice.optional(),
    /** The skill that was stored for the success. */
    skill_candidate: Skill.optional(),
    review_id: z.string().optional(),
    model_spec: ModelSpec,
    /** Ids of the skills that were injected. */
    active_skills: z.array(z.string()),
    cost_usd: z.number(),
  })
  .meta({ id: 'ExecuteAnswer' });
export type ExecuteAnswer = z.infer<typeof ExecuteAnswer>;

/** Body of `POST /advise`. The optional fields after the specification's are ours. */
export const AdviseRequest = z
  .object({
    from_level: EscalationLevel,
    job_type: JobType,
    error: z.string().min(1),
    escalation_history: History.default([]),
    repo_context: z.string().default(''),
    prompt: z.string().optional(),
    context: Json.optional(),
    escalation_advice: AdviceList.default([]),
    signals: Signals.default([]),
    max_usd: Usd.optional(),
  })
  .meta({ id: 'AdviseRequest' });
export type AdviseRequest = z.infer<typeof AdviseRequest>;

export const AdviseAnswer = z
  .strictObject({
    instructions: z.string(),
    reasoning: z.string(),
    suggested_executor_level: EscalationLevel,
  })
  .meta({ id: 'AdviseAnswer' });
export type AdviseAnswer = z.infer<typeof AdviseAnswer>;

/** Body of `POST /v1/escalations`: a whole ladder for one job. */
export const EscalationRequest = z
  .object({
    job_type: JobType,
    prompt: z.string().min(1),
    context: Json.optional(),
    repo_context: z.string().optional(),
    signals: Signals.default([]),
    /** The level of the first execution. */
    escalation_level: EscalationLevel.default(0),
    /** Earlier attempts by any client: the ladder continues after them. */
    escalation_history: History.default([]),
    escalation_advice: AdviceList.default([]),
    /** From an earlier payload, in any form; ignored and computed again. */
    model_spec: JsonObject.optional(),
    /** From an earlier payload; ignored and computed again. */
    active_skills: z.array(z.string()).max(1_000).optional(),
    /** Maximum total cost of its model calls. */
    max_usd: Usd.optional(),
    /** JSON Schema that a result must match. */
    result_schema: JsonObject.optional(),
  })
  .catchall(Json)
  .meta({
    id: 'EscalationRequest',
    description: 'Any other field belongs to the task: it is added to `context`, where models see it.',
  });
export type EscalationRequest = z.infer<typeof EscalationRequest>;

export const EscalationState = z
  .enum(['running', 'in_review', 'succeeded', 'failed', 'cancelled'])
  .meta({ id: 'EscalationState' });
export type EscalationState = z.infer<typeof EscalationState>;

/** The specification's job payload. */
const EscalationPayload = z.strictObject({
  prompt: z.string(),
  context: Json.optional(),
  repo_context: z.string(),
  escalation_history: z.array(EscalationAttempt),
  escalation_advice: z.array(EscalationAdvice),
  /** The model of the current or last attempt. */
  model_spec: ModelSpec,
  /** Ids of the skills injected for that attempt. */
  active_skills: z.array(z.string()),
});

/** A ladder: for a step of a run, or started directly. */
export const Escalation = z
  .strictObject({
    escalation_id: z.string(),
    job_type: z.string(),
    escalation_level: EscalationLevel,
    payload: EscalationPayload,
    signals: z.array(z.string()),
    state: EscalationState,
    result: Json.optional(),
    error: Failure.optional(),
    run_id: z.string().optional(),
    step_id: StepId.optional(),
    item: z.number().int().optional(),
    /** The escalation of the same step in the run that this one repeats. */
    previous_id: z.string().optional(),
    /** The open review, or the last one. */
    review_id: z.string().optional(),
    /** The skill that was stored for its success, or that solved it at level 0. */
    skill_id: z.string().optional(),
    max_usd: z.number().nullable(),
    cost_usd: z.number(),
    reserved_usd: z.number(),
    created_at: Instant,
    finished_at: Instant.nullable(),
    links: z.strictObject({
      self: z.string(),
      run: z.string().optional(),
      review: z.string().optional(),
      console: z.string().optional(),
      temporal: z.string().optional(),
    }),
  })
  .meta({ id: 'Escalation' });
export type Escalation = z.infer<typeof Escalation>;
