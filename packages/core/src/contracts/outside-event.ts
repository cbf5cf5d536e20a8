/** Outside events, which steps with `event` wait for. */
import { z } from 'zod';
import { showCount } from './limits.ts';
import { EventKey, EventName, Instant, Json, StepId } from './primitives.ts';

/** How long an event is kept for steps that wait later. */
export const eventKeptMs = 86_400_000;

/** What a step waits for; the key is empty for an event without one. */
export interface AwaitedEvent {
  readonly name: string;
  readonly key: string;
}

/** Kept events of a project that no step has taken. */
export const mostKeptEvents = 10_000;
export const mostKeptEventBytes = 64 * 1024 * 1024;

/** Body of `POST /v1/events/{name}`. */
export const EventRequest = z
  .strictObject({
    key: EventKey.optional().meta({
      description: 'Which one of the events of this name it is. Default: an event without a key.',
    }),
    id: z.string().min(1).max(256).optional().meta({
      description: 'The id of the event at its sender. An event of the same name and id is given once.',
    }),
    payload: Json.default(null).meta({ description: 'The output of the steps that wait for it.' }),
  })
  .meta({ id: 'EventRequest' });
export type EventRequest = z.infer<typeof EventRequest>;

export const EventReceipt = z
  .strictObject({
    event_id: z.string(),
    name: EventName,
    key: EventKey.nullable(),
    waiting: z.number().int().meta({
      description: 'Steps that waited for the event and took it. 0: it is kept for steps that wait later.',
    }),
    refused_by: z
      .array(
        z.strictObject({
          run_id: z.string(),
          step_id: StepId,
          item: z.number().int().optional(),
          message: z.string(),
        }),
      )
      .meta({ description: `The first ten waiting steps whose schema differs, which continue to wait.` }),
    repeated: z.boolean().meta({
      description: 'true: an event of this id was sent before; `waiting` is that of the first.',
    }),
    kept_until: Instant.meta({
      description: `How long steps may take it. A project keeps ${showCount(mostKeptEvents)} events that no step has taken.`,
    }),
  })
  .meta({ id: 'EventReceipt' });
export type EventReceipt = z.infer<typeof EventReceipt>;
