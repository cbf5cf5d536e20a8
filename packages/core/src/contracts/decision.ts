/**
 * Routing decisions: stored on the attempt, returned to the caller. Dispatch decisions: whether a worker takes a step's
 * calls from a queue, or the worker of the run makes them inline.
 */
import { z } from 'zod';
import { AnswerCache } from './cache.ts';
import { CallOutcome } from './call.ts';
import {
  Affinity,
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
    'secret_not_allowed',
    'draining',
    'down',
    'quarantined',
    'breaker_open',
    'already_tried',
    'no_time',
    'other_protocol',
    'input_invalid',
    'over_ceiling',
    'over_budget',
  ])
  .meta({ id: 'Verdict' });
export type Verdict = z.infer<typeof Verdict>;

export const Candidate = z
  .strictObject({
    endpoint: z.string(),
    /** 0 = free, local, up and idle; 1 = up; 2 = suspect or warming; 3 = half-open breaker; null when ruled out. */
    tier: z.number().int().nullable(),
    cost_usd: z.number().nullable(),
    /** Expected time until the call would end on this instance. */
    wait_ms: z.number().nullable(),
    score: z.number().nullable(),
    verdict: Verdict,
    /** The most that this call may cost there, if the instance declares it by the input. */
    worst_case_usd: z.number().optional(),
    /** Whether what the call needs is loaded there; absent: it needs nothing, or the instance was ruled out. */
    resident: z.boolean().optional(),
    /** Expected time of a load, where it is not. */
    load_ms: z.number().optional(),
    /** Where the prices are from that it declares. */
    price_source: z.string().optional(),
    /** Why the declared worst case does not count, so that the price by the rate holds. */
    worst_case_fault: z.string().optional(),
  })
  .meta({ id: 'Candidate' });
export type Candidate = z.infer<typeof Candidate>;

/** A part of a reservation that grew with its call. */
export const HeldPiece = z
  .strictObject({
    at: Instant,
    usd: z.number(),
    pieces: z.number().int().optional().meta({
      description: 'Of the 32nd, if there are more: the number of pieces from then on, whose sum it is.',
    }),
  })
  .meta({ id: 'HeldPiece' });
export type HeldPiece = z.infer<typeof HeldPiece>;

/** Only of a call whose reservation grows with it. */
export const holdFields = {
  held_usd: z.number().optional().meta({
    description: 'What a call whose reservation grows holds now, or held at its end.',
  }),
  pieces: z.array(HeldPiece).max(32).optional().meta({
    description: 'What it took after its admission, the oldest first.',
  }),
};

export const Decision = z
  .strictObject({
    decision_id: z.string(),
    /** Endpoint of the chosen instance; null when none could accept the call. */
    chosen: z.string().nullable(),
    /** One sentence for a person. */
    reason: z.string(),
    candidates: z.array(Candidate).max(20),
    reserved_usd: z.number(),
    settled_usd: z.number().nullable(),
    ...holdFields,
    stopped: z.literal('budget').optional().meta({
      description: 'The call was stopped on its way, because its budgets had no more room.',
    }),
    cached: z.strictObject({ decision_id: z.string(), saved_usd: z.number() }).optional().meta({
      description: 'Of a direct call that took a cached answer: the decision of the original call.',
    }),
  })
  .meta({ id: 'Decision' });
export type Decision = z.infer<typeof Decision>;

/** What becomes of a call whose budgets have no more room for it. */
export const StepOnBudget = z.enum(['pause', 'stop', 'refuse']).meta({ id: 'StepOnBudget' });
export const CallOnBudget = z.enum(['stop', 'refuse']).meta({ id: 'CallOnBudget' });
export type CallOnBudget = z.infer<typeof CallOnBudget>;
export type OnBudget = z.infer<typeof StepOnBudget>;

const routeFields = {
  priority: Priority.default('standard'),
  /** Maximum cost of the call. */
  budget_ceiling_usd: Usd.optional(),
  /** A version, or a range such as `^1.2`. */
  version: VersionText.optional(),
  /** Tags that the instance must have, all of them. */
  tags: Tags.default([]),
  /** The key of what it needs loaded, over `input`. Default: that of the capability. */
  affinity: Affinity.optional(),
  /** Time limit of one attempt. */
  timeout_ms: z.number().int().min(1).max(86_400_000).default(300_000),
};

/** Body of `POST /v1/route`. With an input, instances whose schema refuses it are ruled out. */
export const RouteRequestBody = z
  .strictObject({
    capability: CapabilityName,
    input: JsonObject.optional(),
    ...routeFields,
    on_budget: StepOnBudget.optional().meta({
      description: 'As of the step or the call. Default: as of a call that names none.',
    }),
  })
  .meta({ id: 'RouteRequest' });
export type RouteRequestBody = z.infer<typeof RouteRequestBody>;

/** Body of `POST /v1/capabilities/{name}/exec`. */
export const ExecRequest = z
  .strictObject({
    input: JsonObject,
    ...routeFields,
    cache: AnswerCache.optional(),
    on_budget: CallOnBudget.optional().meta({
      description:
        'stop: the call begins while every call in flight is expected to fit, and is stopped if there is no more room. refuse: it begins only if the most that it may cost has room. Default refuse.',
    }),
  })
  .meta({ id: 'ExecRequest' });
export type ExecRequest = z.infer<typeof ExecRequest>;

export const ExecAnswer = z
  .strictObject({ ok: z.literal(true), output: Json, routing: Decision })
  .meta({ id: 'ExecAnswer' });
export type ExecAnswer = z.infer<typeof ExecAnswer>;

/** A stored decision, replayed from its inputs. */
export const DecisionDetail = z
  .strictObject({
    ...Decision.shape,
    at: Instant,
    capability: CapabilityName,
    attempt_id: z.string(),
    run_id: z.string().nullable(),
    step_id: z.string().nullable(),
    outcome: CallOutcome,
    /** The inputs of `choose`: request, seed and the candidates at that time. */
    inputs: JsonObject,
    replay: z.strictObject({ chosen: z.string().nullable(), same: z.boolean() }),
  })
  .meta({ id: 'DecisionDetail' });
export type DecisionDetail = z.infer<typeof DecisionDetail>;

export const DecisionQuery = ListQuery.extend({
  capability: CapabilityName.optional(),
  /** The chosen endpoint. */
  endpoint: z.string().max(2_048).optional(),
  run_id: z.string().max(128).optional(),
  /** Default: a week before `until`; no default with `run_id`. */
  since: Instant.optional(),
  /** Default: now. */
  until: Instant.optional(),
}).strict();
export type DecisionQuery = z.infer<typeof DecisionQuery>;

/** A decision in a list, with the inputs for a replay. */
export const DecisionListed = z
  .strictObject({
    decision_id: z.string(),
    at: Instant,
    run_id: z.string().nullable(),
    step_id: z.string().nullable(),
    chosen: z.string().nullable(),
    outcome: CallOutcome,
    /** The code of its error. */
    error: z.string().nullable(),
    settled_usd: z.number().nullable(),
    duration_ms: z.number().nullable(),
    inputs: JsonObject,
  })
  .meta({ id: 'DecisionListed' });
export type DecisionListed = z.infer<typeof DecisionListed>;
export const DecisionList = listOf(DecisionListed).meta({ id: 'DecisionList' });

/** The dispatch that a step, or the pipeline's defaults, may request. */
export const DispatchWish = z.enum(['auto', 'inline', 'queued']).meta({ id: 'DispatchWish' });
export type DispatchWish = z.infer<typeof DispatchWish>;

const dispatchFields = {
  how: z.enum(['inline', 'queued']),
  /**
   * short, slow: according to past calls of the instances; unknown: too few calls. asked: the definition requests it.
   * at_most_once: `retry.max` is 0.
   */
  code: z.enum(['short', 'slow', 'unknown', 'asked', 'at_most_once']),
  /** One sentence for a person. */
  message: z.string(),
  /** The 90th percentile of calls, on the slowest instance that could be chosen; absent without data. */
  p90_ms: z.number().optional(),
  /** Number of calls behind `p90_ms`; older ones weigh less. */
  calls: z.number().int().optional(),
};

export const StepDispatch = z.strictObject(dispatchFields).meta({ id: 'StepDispatch' });
export type StepDispatch = z.infer<typeof StepDispatch>;

/** The decision for all steps of a run with the same route whose definition leaves the dispatch open. */
export const RouteDispatch = z
  .strictObject({
    capability: CapabilityName,
    capability_version: z.string().optional(),
    tags: Tags.optional(),
    ...dispatchFields,
  })
  .meta({ id: 'RouteDispatch' });
export type RouteDispatch = z.infer<typeof RouteDispatch>;

/** Without the message, as stored with a run. */
export type DispatchChoice = Omit<StepDispatch, 'message'>;
export type DecidedRoute = Omit<RouteDispatch, 'message'>;

/** The requirements of a step on its instances; many steps share them. */
export type DispatchRoute = Pick<RouteDispatch, 'capability' | 'capability_version' | 'tags'>;
