/** Questions to a person, and what the person decided. */
import { z } from 'zod';
import { EscalationAdvice, EscalationAttempt } from './escalation.ts';
import { Instant, Json, JsonObject, ListQuery, listOf, PipelineName, StepId, Usd } from './primitives.ts';
import { checkAll, needsOneOf, sayAll } from './rules.ts';
import { SkillPatch } from './skill.ts';

/** escalation: a ladder ended. skill: confidence fell. budget, ops: what only they can change. step: asked for. */
export const ReviewKind = z.enum(['escalation', 'skill', 'budget', 'ops', 'step']).meta({ id: 'ReviewKind' });
export type ReviewKind = z.infer<typeof ReviewKind>;

export const ReviewState = z
  .enum(['open', 'claimed', 'resolved', 'expired', 'cancelled'])
  .meta({ id: 'ReviewState' });
export type ReviewState = z.infer<typeof ReviewState>;

/** An input that would be valid, and how it differs from the one that failed (JSON Patch). */
export const ReviewProposal = z
  .strictObject({
    input: Json,
    patch: z.array(JsonObject),
    /** `repair`, or the id of a skill, or the label of a level. */
    source: z.string(),
    note: z.string().optional(),
  })
  .meta({ id: 'ReviewProposal' });
export type ReviewProposal = z.infer<typeof ReviewProposal>;

/** Answer of `POST /v1/capabilities/{name}/check`. */
export const InputVerdict = z
  .strictObject({
    /** Some instance that it may be given to would take it. */
    valid: z.boolean(),
    /** What the nearest one says. */
    errors: z.array(z.strictObject({ pointer: z.string(), message: z.string() })),
    /** Inputs that it would take. */
    proposals: z.array(ReviewProposal),
  })
  .meta({ id: 'InputCheck' });
export type InputVerdict = z.infer<typeof InputVerdict>;

export const ReviewPayload = z
  .strictObject({
    job_type: z.string().optional(),
    /** What the person is asked about: a step's last input, or a job's prompt and context. */
    input: Json.optional(),
    /** Of an escalated step: what its own call failed of. What was seen last, if it differs, is `details.last_error`. */
    error: z.string().optional(),
    validation_errors: z.array(z.strictObject({ pointer: z.string(), message: z.string() })).optional(),
    proposals: z.array(ReviewProposal).optional(),
    history: z.array(EscalationAttempt).optional(),
    advice: z.array(EscalationAdvice).optional(),
    /** JSON Schema: of the answer in a review of kind step, of the input in others. */
    schema: JsonObject.optional(),
    /** What the step says about its own review. */
    allow_output: z.boolean().optional(),
    optional: z.boolean().optional(),
    /** What a review of kind budget needs to show, and what else a kind does. */
    details: JsonObject.optional(),
  })
  .meta({ id: 'ReviewPayload' });
export type ReviewPayload = z.infer<typeof ReviewPayload>;

/** Which of them a review takes depends on its kind, and on what its step allows. */
export const ReviewAction = z
  .enum([
    'approve',
    'edit',
    'advise',
    'retry',
    'output',
    'skip',
    'reject',
    'raise',
    'cancel',
    'keep',
    'narrow',
    'merge',
    'retire',
  ])
  .meta({ id: 'ReviewAction' });
export type ReviewAction = z.infer<typeof ReviewAction>;

type DecisionField = 'input' | 'instructions' | 'output' | 'budget_ceiling_usd' | 'into' | 'skill';

/** Fields without one of which an action says nothing. `edit` needs `skill` in a review of a skill, else `input`. */
const neededFields: Partial<Record<ReviewAction, readonly DecisionField[]>> = {
  advise: ['instructions'],
  output: ['output'],
  raise: ['budget_ceiling_usd'],
  merge: ['into'],
  narrow: ['skill'],
  edit: ['input', 'skill'],
};
const decisionRules = Object.entries(neededFields).map(([action, fields]) =>
  needsOneOf(fields, ['action', action]),
);

/** Body of `POST /v1/reviews/{id}/decision`. */
export const ReviewDecision = z
  .strictObject({
    action: ReviewAction,
    /** approve: which of the proposals. */
    proposal: z.number().int().min(0).max(100).optional(),
    /** edit: the corrected input. */
    input: Json.optional(),
    /** advise: what the executor should do. */
    instructions: z.string().min(1).max(4_000).optional(),
    /** advise: where to execute. */
    level: z.number().int().min(0).max(4).optional(),
    /** output: what the step succeeds with. */
    output: Json.optional(),
    /** raise: the new ceiling. */
    budget_ceiling_usd: Usd.optional(),
    /** edit and narrow of a skill. */
    skill: SkillPatch.optional(),
    /** merge: id of the skill that stays. */
    into: z.string().max(128).optional(),
    note: z.string().max(10_000).optional(),
    /** Whether a correction that works becomes a skill. Default: yes. */
    remember: z.boolean().optional(),
  })
  .check(checkAll(decisionRules))
  .meta({ id: 'ReviewDecision', ...sayAll(decisionRules) });
export type ReviewDecision = z.infer<typeof ReviewDecision>;

export const Review = z
  .strictObject({
    review_id: z.string(),
    kind: ReviewKind,
    /** One sentence for a person. */
    reason: z.string(),
    /** A claim whose lease ran out shows as open. */
    state: ReviewState,
    run_id: z.string().optional(),
    step_id: StepId.optional(),
    escalation_id: z.string().optional(),
    skill_id: z.string().optional(),
    assignee: z.string().optional(),
    claim_expires_at: Instant.optional(),
    due_at: Instant,
    /** Grows with every change; also the ETag. */
    version: z.number().int(),
    /** 1 = asked for the first time. */
    round: z.number().int(),
    payload: ReviewPayload,
    /** Actions that this review takes. */
    actions: z.array(ReviewAction),
    decision: ReviewDecision.optional(),
    decided_by: z.string().optional(),
    decided_at: Instant.optional(),
    /** When the run learnt of the decision. */
    delivered_at: Instant.optional(),
    created_at: Instant,
  })
  .meta({ id: 'Review' });
export type Review = z.infer<typeof Review>;

/** What a refusal says because somebody else was faster: how the review is now, and who won. */
export const ReviewStanding = Review.pick({
  review_id: true,
  state: true,
  version: true,
  assignee: true,
  claim_expires_at: true,
  decision: true,
  decided_by: true,
  decided_at: true,
}).meta({ id: 'ReviewStanding' });
export type ReviewStanding = z.infer<typeof ReviewStanding>;

/** A review in a list: without what may be large and only the decision needs. */
export const ReviewSummary = Review.extend({
  /** Of its run. */
  pipeline: PipelineName.optional(),
  payload: ReviewPayload.omit({ input: true, proposals: true, history: true, advice: true, schema: true }),
}).meta({ id: 'ReviewSummary' });
export type ReviewSummary = z.infer<typeof ReviewSummary>;

export const ReviewList = listOf(ReviewSummary).meta({ id: 'ReviewList' });

export const ReviewQuery = ListQuery.extend({
  state: ReviewState.optional(),
  kind: ReviewKind.optional(),
  assignee: z.string().max(128).optional(),
  run_id: z.string().max(128).optional(),
  overdue: z
    .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive' })
    .meta({ enum: ['true', 'false'] })
    .optional(),
  /** The newest first by default, or what is due first. */
  order: z.enum(['newest', 'due_at']).default('newest'),
}).meta({ id: 'ReviewQuery' });
export type ReviewQuery = z.infer<typeof ReviewQuery>;
