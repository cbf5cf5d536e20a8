/** Questions to a person, and what the person decided. */
import { z } from 'zod';
import { EscalationAdvice, EscalationAttempt } from './escalation.ts';
import { Instant, Json, JsonObject, ListQuery, listOf, PipelineName, StepId, Usd } from './primitives.ts';
import { checkAll, needsOneOf, sayAll } from './rules.ts';
import { SkillPatch } from './skill.ts';

/** escalation: a ladder ended. skill: its confidence fell. budget, ops: only a person can help. step: a review step. */
export const ReviewKind = z.enum(['escalation', 'skill', 'budget', 'ops', 'step']).meta({ id: 'ReviewKind' });
export type ReviewKind = z.infer<typeof ReviewKind>;

export const ReviewState = z
  .enum(['open', 'claimed', 'resolved', 'expired', 'cancelled'])
  .meta({ id: 'ReviewState' });
export type ReviewState = z.infer<typeof ReviewState>;

/** What decisions about a repair are about: equal repairs of a capability have the same operation, place and schema. */
export const RepairIdentity = z
  .strictObject({
    /** The kind of the change and its way, such as `coerce.dB` or `rename.key`. */
    operation: z.string(),
    /** Pointer in the schema's terms: `*` for an item of a list, `{}` for a key of a map. */
    place: z.string(),
    /** SHA-256 of the schema of that place, hex. */
    schema_sha256: z.string(),
  })
  .meta({ id: 'RepairIdentity' });
export type RepairIdentity = z.infer<typeof RepairIdentity>;

/** A valid input, and its difference from the failed one (JSON Patch). */
export const ReviewProposal = z
  .strictObject({
    input: Json,
    patch: z.array(JsonObject),
    /** `repair`, or the id of a skill, or the label of a level. */
    source: z.string(),
    note: z.string().optional(),
    /** Absent: the proposal is no single repair, or cannot be distinguished from another one. */
    repair: RepairIdentity.optional(),
  })
  .meta({ id: 'ReviewProposal' });
export type ReviewProposal = z.infer<typeof ReviewProposal>;

/** Answer of `POST /v1/capabilities/{name}/check`. */
export const InputVerdict = z
  .strictObject({
    /** True if at least one eligible instance would accept the input. */
    valid: z.boolean(),
    /** Errors of the instance that comes closest. */
    errors: z.array(z.strictObject({ pointer: z.string(), message: z.string() })),
    /** Inputs that the instance would accept. */
    proposals: z.array(ReviewProposal),
  })
  .meta({ id: 'InputCheck' });
export type InputVerdict = z.infer<typeof InputVerdict>;

export const ReviewPayload = z
  .strictObject({
    job_type: z.string().optional(),
    /** The subject of the review: a step's last input, or a job's prompt and context. */
    input: Json.optional(),
    /** For an escalated step: the error of its own call. If the latest error differs, it is in `details.last_error`. */
    error: z.string().optional(),
    validation_errors: z.array(z.strictObject({ pointer: z.string(), message: z.string() })).optional(),
    proposals: z.array(ReviewProposal).optional(),
    history: z.array(EscalationAttempt).optional(),
    advice: z.array(EscalationAdvice).optional(),
    /** JSON Schema of the answer for kind step, else of the input. */
    schema: JsonObject.optional(),
    /** Settings of a review step. */
    allow_output: z.boolean().optional(),
    optional: z.boolean().optional(),
    /** Details of a budget review, and kind-specific data of others. */
    details: JsonObject.optional(),
  })
  .meta({ id: 'ReviewPayload' });
export type ReviewPayload = z.infer<typeof ReviewPayload>;

/** The actions of a review depend on its kind and on its step's settings. */
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

/** Required fields of actions; one of them suffices. `edit` needs `skill` in a review of a skill, else `input`. */
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
    /** approve: index of the proposal. */
    proposal: z.number().int().min(0).max(100).optional(),
    /** edit: the corrected input. */
    input: Json.optional(),
    /** advise: instructions for the executor. */
    instructions: z.string().min(1).max(4_000).optional(),
    /** advise: level of the execution. */
    level: z.number().int().min(0).max(4).optional(),
    /** output: the step's output. */
    output: Json.optional(),
    /** raise: the new ceiling. */
    budget_ceiling_usd: Usd.optional(),
    /** For edit and narrow of a skill. */
    skill: SkillPatch.optional(),
    /** merge: id of the remaining skill. */
    into: z.string().max(128).optional(),
    note: z.string().max(10_000).optional(),
    /** True: a correction that works becomes a skill. Default true. */
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
    /** A claim with an expired lease is shown as open. */
    state: ReviewState,
    run_id: z.string().optional(),
    step_id: StepId.optional(),
    /** The item of a step with `for_each`, from 1 on. */
    item: z.number().int().optional(),
    escalation_id: z.string().optional(),
    skill_id: z.string().optional(),
    assignee: z.string().optional(),
    claim_expires_at: Instant.optional(),
    due_at: Instant,
    /** Increases with every change; also the ETag. */
    version: z.number().int(),
    /** 1 = the first round. */
    round: z.number().int(),
    payload: ReviewPayload,
    /** Actions that this review allows. */
    actions: z.array(ReviewAction),
    decision: ReviewDecision.optional(),
    decided_by: z.string().optional(),
    decided_at: Instant.optional(),
    /** When the decision was delivered to the run. */
    delivered_at: Instant.optional(),
    created_at: Instant,
  })
  .meta({ id: 'Review' });
export type Review = z.infer<typeof Review>;

/** Details of a refusal after another person acted first: the review's state, and who claimed or decided it. */
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

/** A review in a list, without the large fields that only a decision needs, or without the largest of them. */
export const ReviewSummary = Review.extend({
  /** The pipeline of its run. */
  pipeline: PipelineName.optional(),
  payload: ReviewPayload.omit({ history: true, advice: true }),
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
  /** Default: newest first; `due_at`: earliest due first. */
  order: z.enum(['newest', 'due_at']).default('newest'),
  payload: z.enum(['short', 'full']).optional().meta({
    description:
      'Default short; full: with input, proposals and schema, as a table of reviews needs them; one of more than 16 KiB is only in the review itself.',
  }),
}).meta({ id: 'ReviewQuery' });
export type ReviewQuery = z.infer<typeof ReviewQuery>;
