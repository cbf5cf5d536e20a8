/** Answer of `GET /v1/limits`: what one request may hold. */
import { z } from 'zod';

const Count = z.number().int();

const BodyLimits = z.strictObject({
  bytes: Count,
  depth: Count,
  keys: Count,
  values: Count,
  string_bytes: Count,
});

const Rate = z.strictObject({ per_second: z.number(), burst: Count });

export const Limits = z
  .strictObject({
    request: BodyLimits,
    /** A body that carries a job or another input. */
    data: BodyLimits,
    definition: BodyLimits,
    media_bytes: Count,
    header_bytes: Count,
    body_timeout_ms: Count,
    wait_seconds: Count,
    list_items: Count,
    /** Of the project at once. */
    open_runs: z.number().int(),
    pipeline_steps: Count,
    idempotency_hours: Count,
    /** The rates of a key, in each process; null: none. */
    rates: z
      .strictObject({
        request: Rate,
        start: Rate,
        escalation: Rate,
        heartbeat: Rate,
        session: Rate,
        wrong_key: Rate,
      })
      .nullable(),
    /** Of a key in each process; null: as many as it likes. */
    open_at_once: z.strictObject({ requests: Count, streams: Count }).nullable(),
  })
  .meta({ id: 'Limits' });
export type Limits = z.infer<typeof Limits>;
