/** Cached results: list and remove. */
import { z } from 'zod';
import { CapabilityName, Instant, ListQuery, listOf, PipelineName, StepId } from './primitives.ts';

const CacheKey = z.string().regex(/^[0-9a-f]{64}$/, { error: 'a key is 64 hexadecimal digits' });

/** A cached result, and its origin. */
export const CacheEntry = z
  .strictObject({
    key: CacheKey,
    capability: CapabilityName,
    /** The pipeline of the run that produced the result. */
    pipeline: PipelineName,
    run_id: z.string(),
    step_id: StepId,
    /** Absent for a step without items. */
    item: z.number().int().optional(),
    /** The cost of the call, saved by each use. */
    cost_usd: z.number(),
    /** Number of files that the result has written or refers to. */
    files: z.number().int(),
    stored_at: Instant,
    expires_at: Instant,
  })
  .meta({ id: 'CacheEntry' });
export type CacheEntry = z.infer<typeof CacheEntry>;
export const CacheList = listOf(CacheEntry).meta({ id: 'CacheList' });

/** What a project has in the cache of a capability, and what that has saved in the last 30 days. */
const CachedOfCapability = z
  .strictObject({
    capability: CapabilityName,
    /** Results of steps. */
    results: z.number().int(),
    /** Answers of direct calls. */
    answers: z.number().int(),
    /** The size of the answers; results are part of their runs. */
    answer_bytes: z.number().int(),
    /** The newest of both; absent without any. */
    stored_at: Instant.optional(),
    /** Calls that took a result or an answer. */
    hits: z.number().int(),
    saved_usd: z.number(),
  })
  .meta({ id: 'CachedOfCapability' });
export type CachedOfCapability = z.infer<typeof CachedOfCapability>;
export const CacheSummary = z
  .strictObject({ items: z.array(CachedOfCapability) })
  .meta({ id: 'CacheSummary' });
export type CacheSummary = z.infer<typeof CacheSummary>;

const which = {
  capability: CapabilityName.optional(),
  /** The pipeline of the runs that produced the results. */
  pipeline: PipelineName.optional(),
  run_id: z.string().min(1).max(128).optional(),
};

export const CacheQuery = ListQuery.extend(which).strict();
export type CacheQuery = z.infer<typeof CacheQuery>;

/** The results to remove; without a filter, all of the project. */
export const CacheRemoval = z.strictObject({ key: CacheKey.optional(), ...which });
export type CacheRemoval = z.infer<typeof CacheRemoval>;

/** The wish of a direct call to take the answer of an equal one. */
export const AnswerCache = z
  .strictObject({
    ttl_seconds: z.number().int().min(1).max(7_776_000).meta({
      description: 'The highest age of an answer, at most 90 days.',
    }),
    insist: z.boolean().optional().meta({
      description: 'Whether answers are reused if the spec is not marked deterministic. Default false.',
    }),
  })
  .meta({ id: 'AnswerCache' });

export const CacheRemoved = z.strictObject({ removed: z.number().int() }).meta({ id: 'CacheRemoved' });
