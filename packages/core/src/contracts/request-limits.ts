/** Answer of `GET /v1/limits`: the limits of requests. */
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
    /** A request in OpenAI's form. */
    chat: BodyLimits,
    chat_messages: Count,
    chat_tools: Count,
    definition: BodyLimits,
    media_bytes: Count,
    header_bytes: Count,
    body_timeout_ms: Count,
    wait_seconds: Count,
    list_items: Count,
    /** Open runs of the project. */
    open_runs: z.number().int(),
    pipeline_steps: Count,
    idempotency_hours: Count,
    /** The rates of a key in each process; null: no limits. */
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
    /** Open requests of a key in each process; null: no limit. */
    open_at_once: z.strictObject({ requests: Count, streams: Count }).nullable(),
  })
  .meta({ id: 'Limits' });
export type Limits = z.infer<typeof Limits>;
