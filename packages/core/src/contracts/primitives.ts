/** Small schemas that several contracts share. */
import { z } from 'zod';
import { durationFault, durationPattern, readDuration } from './duration-text.ts';

/** A step id. */
export const StepId = z.string().regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, {
  error: 'a step id starts with a letter or _, then letters, digits, _ or -, at most 64 characters',
});

/** A pipeline name: like a step id, but it may start with a digit. */
export const PipelineName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/, {
  error: 'a pipeline name is made of letters, digits, _ or -, at most 64 characters',
});

/** A capability name: like a pipeline name, but it may contain dots (`model.fast`). */
export const CapabilityName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/, {
  error: 'a capability name is made of letters, digits, _, - or dots, at most 128 characters',
});

/** The name of an outside event: like a capability name (`payment.settled`). */
export const EventName = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/, {
  error: 'the name of an event is made of letters, digits, _, - or dots, at most 128 characters',
});

/** Which one of the events of a name it is: an order, a job of a provider. */
export const EventKey = z.string().min(1).max(256);

export const VersionText = z.string().min(1).max(128);

/** A version of another pipeline: `name@version` or `name@alias`. */
export const PipelineReference = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}@\S{1,128}$/, {
  error: 'a pipeline is referred to as name@version or name@alias',
});

/** interactive pays for speed, batch stays on free instances. */
export const Priority = z.enum(['interactive', 'standard', 'batch']).meta({ id: 'Priority' });
export type Priority = z.infer<typeof Priority>;

/** Text by name. A filter is written `name=text`, so that no name may hold `=`. */
export const Labels = z.record(
  z.string().regex(/^[^=]{1,64}$/, { error: 'the name of a label has 1 to 64 characters, and no =' }),
  z.string().max(256),
);

export const Tag = z.string().min(1).max(64);
export const Tags = z.array(Tag).max(32);

/** USD, finite and not negative; stored as integer nano-USD. */
export const Usd = z.number().nonnegative().max(1_000_000);

/** A moment on the wire: RFC 3339 in UTC. The database knows no year 0. */
export const Instant = z.iso
  .datetime()
  .refine((text) => !text.startsWith('0000'), { error: 'years begin with 0001' })
  .meta({ not: { pattern: '^0000' } });

export const Timezone = z
  .string()
  .min(1)
  .max(64)
  .meta({ description: 'An IANA name that the database knows, such as Europe/Berlin.' });

/** A duration as authors write it: `500ms`, `30s`, `1h30m`, or in ISO 8601. */
export const Duration = z.string({ error: durationFault }).regex(durationPattern, { error: durationFault });

export function durationWithin(least: string, most: string): z.ZodString {
  const [leastMs, mostMs] = [Number(readDuration(least)), Number(readDuration(most))];
  return Duration.refine(
    (text) => {
      const ms = readDuration(text) ?? leastMs; // what is none is refused already
      return ms >= leastMs && ms <= mostMs;
    },
    { error: ({ input }) => `is ${input}; ${least} to ${most} is allowed` },
  );
}

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}
/**
 * Any JSON value. Its contents are not walked: `JSON.parse` has accepted it, after a scan that bounds it, and a schema
 * that tries every kind for every inner value takes seconds for a large body.
 */
export const Json: z.ZodType<Json> = z
  .unknown()
  .refine((value) => value !== undefined, { error: 'is required' })
  .meta({ id: 'Json' }) as z.ZodType<Json>;

/** Any JSON object; its contents are not walked either. */
export const JsonObject: z.ZodType<JsonObject> = z
  .unknown()
  .check(({ value, issues }) => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return;
    issues.push({ code: 'invalid_type', expected: 'object', input: value });
  })
  .meta({ id: 'JsonObject', type: 'object' }) as z.ZodType<JsonObject>;

/**
 * The error of a step or run. `status` is the instance's HTTP status, if it answered; code decides by it, never by the
 * message.
 */
export const Failure = z
  .strictObject({
    code: z.string(),
    message: z.string(),
    status: z.int().min(100).max(599).optional(),
    details: Json.optional(),
  })
  .meta({ id: 'Failure' });
export type Failure = z.infer<typeof Failure>;

export function listOf<Item extends z.ZodType>(item: Item) {
  return z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() });
}

export const ListQuery = z.object({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(256).optional().meta({ description: 'The `next_cursor` of the page before.' }),
});

/** What decides about what a call needs loaded. */
export const Affinity = z.string().min(1).max(1_024).meta({
  id: 'Affinity',
  description:
    'A text with expressions over `input`, such as `{{ input.model }}`: the key of what a call needs loaded. Calls with the same key go to an instance that has it, if that is sooner.',
});
