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

export const Limits = z
  .strictObject({
    request: BodyLimits,
    /** Of a body that carries a job or another input. */
    data: BodyLimits,
    definition: BodyLimits,
    media_bytes: Count,
    header_bytes: Count,
    body_timeout_ms: Count,
    wait_seconds: Count,
    list_items: Count,
    pipeline_steps: Count,
    idempotency_hours: Count,
  })
  .meta({ id: 'Limits' });
export type Limits = z.infer<typeof Limits>;
