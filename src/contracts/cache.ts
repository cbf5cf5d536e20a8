/** Results that equal calls take, as they are listed and removed. */
import { z } from 'zod';
import { CapabilityName, Instant, ListQuery, listOf, PipelineName, StepId } from './primitives.ts';

const CacheKey = z.string().regex(/^[0-9a-f]{64}$/, { error: 'a key is 64 hexadecimal digits' });

/** A result that is kept, and where it was made. */
export const CacheEntry = z
  .strictObject({
    key: CacheKey,
    capability: CapabilityName,
    /** Of the run that made it. */
    pipeline: PipelineName,
    run_id: z.string(),
    step_id: StepId,
    /** Absent for a step without items. */
    item: z.number().int().optional(),
    /** What it has cost, and saves each time. */
    cost_usd: z.number(),
    /** Files that it has written or named. */
    files: z.number().int(),
    stored_at: Instant,
    expires_at: Instant,
  })
  .meta({ id: 'CacheEntry' });
export type CacheEntry = z.infer<typeof CacheEntry>;
export const CacheList = listOf(CacheEntry).meta({ id: 'CacheList' });

const which = {
  capability: CapabilityName.optional(),
  /** Of the runs that made them. */
  pipeline: PipelineName.optional(),
  run_id: z.string().min(1).max(128).optional(),
};

export const CacheQuery = ListQuery.extend(which).strict();
export type CacheQuery = z.infer<typeof CacheQuery>;

/** Which are removed; all of the project when nothing is said. */
export const CacheRemoval = z.strictObject({ key: CacheKey.optional(), ...which });
export type CacheRemoval = z.infer<typeof CacheRemoval>;

export const CacheRemoved = z.strictObject({ removed: z.number().int() }).meta({ id: 'CacheRemoved' });
