/** Why a call went where it went: stored on the attempt, returned to the caller. */
import { z } from 'zod';
import {
  CapabilityName,
  Instant,
  Json,
  JsonObject,
  ListQuery,
  listOf,
  Priority,
  Tags,
  Usd,
  VersionText,
} from './primitives.ts';

export const Verdict = z
  .enum([
    'chosen',
    'worse',
    'wait',
    'lost_claim',
    'wrong_version',
    'tag_mismatch',
    'draining',
    'down',
    'quarantined',
    'breaker_open',
    'already_tried',
    'input_invalid',
    'over_ceiling',
    'over_budget',
  ])
  .meta({ id: 'Verdict' });
export type Verdict = z.infer<typeof Verdict>;

export const Candidate = z
  .strictObject({
    endpoint: z.string(),
    /** 0 = free, local, up and idle; 1 = up; 2 = suspect; 3 = half-open breaker; null when filtered out. */
    tier: z.number().int().nullable(),
    cost_usd: z.number().nullable(),
    /** Expected time until the call would end there. */
    wait_ms: z.number().nullable(),
    score: z.number().nullable(),
    verdict: Verdict,
  })
  .meta({ id: 'Candidate' });
export type Candidate = z.infer<typeof Candidate>;

export const Decision = z
  .strictObject({
    decision_id: z.string(),
    /** Endpoint of the chosen instance; null when none could take the call. */
    chosen: z.string().nullable(),
    /** One sentence for a person. */
    reason: z.string(),
    candidates: z.array(Candidate).max(20),
    reserved_usd: z.number(),
    settled_usd: z.number().nullable(),
  })
  .meta({ id: 'Decision' });
export type Decision = z.infer<typeof Decision>;

const routeFields = {
  priority: Priority.default('standard'),
  /** The most that the call may cost. */
  budget_ceiling_usd: Usd.optional(),
  /** A version, or a range such as `^1.2`. */
  version: VersionText.optional(),
  /** Tags that the instance must all carry. */
  tags: Tags.default([]),
  /** How long one attempt may take. */
  timeout_ms: z.number().int().min(1).max(86_400_000).default(300_000),
};

/** Body of `POST /v1/route`. With an input, instances whose schema refuses it are ruled out. */
export const RouteRequestBody = z
  .strictObject({ capability: CapabilityName, input: JsonObject.optional(), ...routeFields })
  .meta({ id: 'RouteRequest' });
export type RouteRequestBody = z.infer<typeof RouteRequestBody>;

/** Body of `POST /v1/capabilities/{name}/exec`. */
export const ExecRequest = z.strictObject({ input: JsonObject, ...routeFields }).meta({ id: 'ExecRequest' });
export type ExecRequest = z.infer<typeof ExecRequest>;

export const ExecAnswer = z
  .strictObject({ ok: z.literal(true), output: Json, routing: Decision })
  .meta({ id: 'ExecAnswer' });
export type ExecAnswer = z.infer<typeof ExecAnswer>;

/** A stored decision, made again from what was known then. */
export const DecisionDetail = z
  .strictObject({
    ...Decision.shape,
    at: Instant,
    capability: CapabilityName,
    attempt_id: z.string(),
    run_id: z.string().nullable(),
    step_id: z.string().nullable(),
    /** What `choose` was given: request, seed and the candidates as they were. */
    inputs: JsonObject,
    replay: z.strictObject({ chosen: z.string().nullable(), same: z.boolean() }),
  })
  .meta({ id: 'DecisionDetail' });
export type DecisionDetail = z.infer<typeof DecisionDetail>;

export const DecisionQuery = ListQuery.extend({
  capability: CapabilityName.optional(),
  /** That was chosen. */
  endpoint: z.string().max(2_048).optional(),
  run_id: z.string().max(128).optional(),
  /** A week before `until` by default, except of a run. */
  since: Instant.optional(),
  /** Now by default. */
  until: Instant.optional(),
}).strict();
export type DecisionQuery = z.infer<typeof DecisionQuery>;

/** One of many, with what it takes to make it again. */
export const DecisionListed = z
  .strictObject({
    decision_id: z.string(),
    at: Instant,
    run_id: z.string().nullable(),
    step_id: z.string().nullable(),
    chosen: z.string().nullable(),
    settled_usd: z.number().nullable(),
    duration_ms: z.number().nullable(),
    inputs: JsonObject,
  })
  .meta({ id: 'DecisionListed' });
export type DecisionListed = z.infer<typeof DecisionListed>;
export const DecisionList = listOf(DecisionListed).meta({ id: 'DecisionList' });
