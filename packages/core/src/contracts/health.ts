/** Health at a glance: how the last runs of pipelines, and the last calls of instances, have ended. */
import { z } from 'zod';
import { CapabilityName, Instant, PipelineName } from './primitives.ts';
import { RunState } from './run.ts';

/** Of `GET /v1/runs/health` and `GET /v1/calls/health`. */
export const HealthQuery = z.strictObject({
  last: z.coerce.number().int().min(1).max(50).default(20).meta({
    description: 'How many of the newest results are examined, of each pipeline or instance.',
  }),
});
export type HealthQuery = z.infer<typeof HealthQuery>;

/** Sums of the examined results that have ended. */
const healthFields = {
  ended: z.number().int(),
  succeeded: z.number().int(),
  /** Medians of those that succeeded; null without any. */
  p50_ms: z.number().nullable(),
  p50_usd: z.number().nullable(),
};

/** Answer of `GET /v1/runs/health`: the last runs of each stored pipeline, without child runs. */
export const RunsHealth = z
  .strictObject({
    items: z.array(
      z.strictObject({
        pipeline: PipelineName,
        /** Newest first. */
        last: z.array(
          z.strictObject({
            run_id: z.string(),
            state: RunState,
            /** Items that failed in a run that succeeded; absent for none. */
            failed_items: z.number().int().optional(),
            created_at: Instant,
          }),
        ),
        ...healthFields,
      }),
    ),
  })
  .meta({ id: 'RunsHealth' });
export type RunsHealth = z.infer<typeof RunsHealth>;

/** Answer of `GET /v1/calls/health`: the project's last calls of each instance that serves it. */
export const CallsHealth = z
  .strictObject({
    items: z.array(
      z.strictObject({
        name: CapabilityName,
        endpoint: z.string(),
        /** Those that were sent and have ended, newest first. */
        last: z.array(z.strictObject({ at: Instant, succeeded: z.boolean(), error: z.string().optional() })),
        ...healthFields,
      }),
    ),
  })
  .meta({ id: 'CallsHealth' });
export type CallsHealth = z.infer<typeof CallsHealth>;
