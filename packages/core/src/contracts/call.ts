/** Calls: every attempt of a project with its payer, its use and its end; and their contents, where they are kept. */
import { z } from 'zod';
import { CapabilityName, Instant, Json, ListQuery, listOf, PipelineName } from './primitives.ts';

/** cached: the answer of an equal call was used, at no cost. */
export const CallOutcome = z
  .enum(['running', 'succeeded', 'failed', 'cancelled', 'cached'])
  .meta({ id: 'CallOutcome' });
export type CallOutcome = z.infer<typeof CallOutcome>;

const tokens = z.number().int().min(0);

/** The tokens that the instance reports. `cached_read` and `cached_write` are parts of `input`, `reasoning` of `output`. */
export const CallTokens = z
  .strictObject({
    input: tokens.optional(),
    output: tokens.optional(),
    cached_read: tokens.optional(),
    cached_write: tokens.optional(),
    reasoning: tokens.optional(),
  })
  .meta({ id: 'CallTokens' });
export type CallTokens = z.infer<typeof CallTokens>;

const callFields = {
  decision_id: z.string(),
  at: Instant,
  capability: CapabilityName,
  /** Endpoint of the instance. */
  endpoint: z.string(),
  outcome: CallOutcome,
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  /** Null while it is running. */
  duration_ms: z.number().nullable(),
  cost_usd: z.number().nullable(),
  /** Null while it is running. estimated: the amount that was assumed. */
  certainty: z.enum(['exact', 'estimated']).nullable(),
  model: z
    .string()
    .nullable()
    .meta({ description: 'As its provider names it; null: the answer names none.' }),
  tokens: CallTokens.nullable(),
  /** The key or person that pays: of a call of a run, that of the run at the top. */
  key_id: z.string().nullable(),
  user: z.string().nullable().meta({ description: 'The `user` of the request.' }),
  labels: z.record(z.string(), z.string()),
  /** Null, with the next three: a direct call. */
  run_id: z.string().nullable(),
  pipeline: z.string().nullable(),
  step_id: z.string().nullable(),
  item: z.number().int().nullable(),
};

export const CallRecord = z.strictObject(callFields).meta({ id: 'CallRecord' });
export type CallRecord = z.infer<typeof CallRecord>;
export const CallList = listOf(CallRecord).meta({ id: 'CallList' });

export const CallDetail = z
  .strictObject({
    ...callFields,
    attempt_id: z.string(),
    /** 1 for the first attempt of the same call. */
    number: z.number().int(),
    reserved_usd: z.number(),
    /** The part of the reservation that came after the call began, in so many pieces. */
    grown_usd: z.number(),
    pieces: z.number().int(),
    /** The original call of a cached answer. */
    cached_from: z.string().nullable(),
    saved_usd: z.number(),
    has_content: z
      .boolean()
      .meta({ description: 'Whether its contents are kept, for keys that may read them.' }),
  })
  .meta({ id: 'CallDetail' });
export type CallDetail = z.infer<typeof CallDetail>;

/** What is stored of a call whose project keeps it. */
export interface KeptContent {
  readonly input: Json;
  /** Null: nothing was answered. */
  readonly output: Json;
}

/** What was sent and answered. Long texts are shortened; secrets are the references that stand for them. */
export const CallContent = z
  .strictObject({
    decision_id: z.string(),
    input: Json,
    /** Null: nothing was answered. */
    output: Json,
    /** When the contents will be deleted. */
    deleted_at: Instant,
  })
  .meta({ id: 'CallContent' });
export type CallContent = z.infer<typeof CallContent>;

// biome-ignore lint/suspicious/noControlCharactersInRegex: Postgres stores no NUL
const label = z.string().regex(/^[^=\u0000]{1,64}=[^\u0000]{0,256}$/u, { error: 'NAME=VALUE' });
/** Postgres stores no NUL. */
const text = z
  .string()
  .min(1)
  .max(256)
  .refine((value) => !value.includes('\0'), { error: 'a text without NUL' });

export const CallQuery = ListQuery.extend({
  since: Instant.optional(),
  until: Instant.optional(),
  capability: CapabilityName.optional(),
  /** Of the instance. */
  endpoint: z.string().max(2_048).optional(),
  key: text.optional().meta({ description: 'The id of the key or person that pays.' }),
  user: text.optional(),
  label: label.optional().meta({ description: '`NAME=VALUE`' }),
  pipeline: PipelineName.optional(),
  model: text.optional().meta({ description: 'The model, as its provider names it.' }),
  outcome: CallOutcome.optional(),
  run_id: z.string().max(128).optional(),
  direct: z
    .stringbool({ truthy: ['true'], falsy: ['false'], case: 'sensitive' })
    .optional()
    .meta({
      enum: ['true', 'false'],
      description: 'true: only calls without a run. false: only calls of runs.',
    }),
  /** csv returns all matching calls, newest first, without pages. */
  format: z.enum(['json', 'csv']).default('json'),
}).strict();
export type CallQuery = z.infer<typeof CallQuery>;
