/**
 * A pipeline definition: the specification's closed core (pipeline, version, steps[id, capability,
 * depends_on, input]) plus optional keys. Unknown keys are errors.
 */

import { z } from 'zod';
import { DispatchWish, StepOnBudget } from './decision.ts';
import { mostItems, mostRounds, mostSteps, showCount } from './limits.ts';
import {
  Affinity,
  CapabilityName,
  Duration,
  EventName,
  Json,
  JsonObject,
  Labels,
  PipelineName,
  PipelineReference,
  Priority,
  StepId,
  Tags,
  Usd,
  VersionText,
} from './primitives.ts';

/** Transient failures, and answers that do not match their schema: a refused input is never retried. */
export const RetryPolicy = z
  .strictObject({
    max: z.number().int().min(0).max(100).optional().meta({
      description: 'Attempts after the first one; 0 = at most one attempt. Default 3.',
    }),
    initial: Duration.optional().meta({ description: 'The pause before the second attempt. Default 1s.' }),
    factor: z.number().min(1).max(10).optional().meta({
      description: 'The factor by which each pause is longer than the previous one. Default 2.',
    }),
    max_delay: Duration.optional().meta({
      description: 'The longest pause. Default 60s, or `initial` if that is longer.',
    }),
    invalid_output: z.number().int().min(0).max(100).optional().meta({
      description:
        'How often an answer that does not match its schema is asked for again, at once and with its fault. Default 0.',
    }),
  })
  .meta({ id: 'RetryPolicy' });
export type RetryPolicy = z.infer<typeof RetryPolicy>;

/** Handling of a step's final failure: corrected inputs, advice by models, then a person. */
export const EscalatePolicy = z
  .strictObject({
    enabled: z.boolean().optional().meta({
      description: 'Whether a refused input or output is escalated. Default true.',
    }),
    start_level: z.number().int().min(0).max(4).optional().meta({
      description: 'The lowest level of models to use: 2 skips level 1. 0 and 1 skip no model. Default 0.',
    }),
    max_level: z.number().int().min(0).max(4).optional().meta({
      description: 'The highest level; above it, a review is opened. 0 = no models. Default 4.',
    }),
    max_usd: Usd.optional().meta({
      description: 'The most that all model calls of one escalation may cost. Default: none.',
    }),
    repair: z.enum(['off', 'propose', 'apply']).optional().meta({
      description:
        'Whether the one minimal change that makes an input valid is ignored, proposed or applied. Default propose.',
    }),
    on_exhausted: z.enum(['wait', 'fail']).optional().meta({
      description: 'wait: the step waits for a review; fail: it fails at once. Default wait.',
    }),
  })
  .meta({ id: 'EscalatePolicy' });
export type EscalatePolicy = z.infer<typeof EscalatePolicy>;

/** Reuse of the result of an equal call. */
export const CachePolicy = z
  .strictObject({
    ttl: Duration.meta({
      description: 'The highest age of a result, at most 90d. With 0s, no result is reused.',
    }),
    scope: z.enum(['project', 'pipeline', 'run']).optional().meta({
      description:
        'The results that are reused: those of the project, of this pipeline or of the run. Default project.',
    }),
    insist: z.boolean().optional().meta({
      description:
        'Whether results are reused if the spec of the capability is not marked deterministic. Default false.',
    }),
  })
  .meta({ id: 'CachePolicy' });
export type CachePolicy = z.infer<typeof CachePolicy>;

/** Settings of a step; `defaults` sets them for all steps. */
const stepSettings = {
  retry: RetryPolicy.optional().meta({
    description: 'Retries after temporary failures and wrong answers. A refused input is never retried.',
  }),
  timeout: Duration.optional().meta({ description: 'Limit of one attempt, at most 24h. Default 300s.' }),
  queue_timeout: Duration.optional().meta({
    description:
      'The time to wait for a free slot before each attempt, at most 90d. No other timeout of the step runs meanwhile. Default: no limit.',
  }),
  priority: Priority.optional().meta({
    description:
      'interactive pays for speed, batch stays on free instances. Default: the priority of the run.',
  }),
  budget_ceiling_usd: Usd.optional().meta({
    description: 'The ceiling of one call in USD; on a step with `pipeline`, the ceiling of its child run.',
  }),
  on_budget: StepOnBudget.optional().meta({
    description:
      'The end of a call whose budgets have no more room. pause: it begins while every call in flight is expected to fit, is stopped if there is no more room, and is made again when there is budget. stop: the same, but a model that is stopped ends its answer there. refuse: it begins only if the most that it may cost has room. Default pause.',
  }),
  escalate: EscalatePolicy.optional().meta({
    description: 'The handling of a refused input or output: corrections, models, then a review.',
  }),
  dispatch: DispatchWish.optional().meta({
    description:
      'inline: without a queue; auto: inline if the calls are known to be short when the run begins. Default auto.',
  }),
  cache: CachePolicy.optional().meta({
    description:
      'Reuses the result of an equal call of a deterministic capability. Default: no result is reused.',
  }),
};

/** How many answers of items are enough, and which ones count. */
export const Enough = z
  .strictObject({
    count: z.number().int().min(1).max(mostItems).optional().meta({
      description: 'Answers that are enough. Default 1.',
    }),
    if: z.string().min(1).max(65_536).optional().meta({
      description:
        'A condition over `output`, `item` and `index`: which answers count. Default: all. An answer for which it has no value does not count.',
    }),
  })
  .meta({ id: 'Enough' });

/** Runs the step once per item of a list; its output is the list of their outputs, in item order. */
export const ForEach = z
  .strictObject({
    items: Json.meta({
      description: `An expression that yields a list, or a list that may hold expressions; at most ${showCount(mostItems)} items.`,
    }),
    max_parallel: z.number().int().min(1).max(200).optional().meta({
      description: 'Items that run in parallel. Default: as many as the run allows.',
    }),
    tolerate: z.number().int().min(0).max(mostItems).optional().meta({
      description:
        'Items that may fail; the output of a failed item is null. Default 0, or with `enough` as many as leave enough.',
    }),
    enough: z
      .union([z.number().int().min(1).max(mostItems), Enough])
      .optional()
      .meta({
        description:
          'The step succeeds with this many answers. The other items are cancelled, and their outputs are null. Default: all items.',
      }),
  })
  .meta({ id: 'ForEach' });

/** Executes the step again until a condition holds; its output is that of the last round. */
export const Repeat = z
  .strictObject({
    until: z.string().min(1).max(65_536).meta({
      description:
        'A condition, without {{ }}, on each round when it has succeeded: `round.output` is its output. When it is true, the step ends.',
    }),
    max: z
      .number()
      .int()
      .min(1)
      .max(mostRounds)
      .meta({
        description: `The most rounds, at most ${showCount(mostRounds)}.`,
      }),
    pause: Duration.optional().meta({
      description: 'The time between two rounds, at most 7d. It occupies no slot. Default: none.',
    }),
    timeout: Duration.optional().meta({
      description:
        'No round begins later than this after the first one, at most 90d. Pauses of the run do not count. Default: no limit.',
    }),
    on_exhausted: z.enum(['fail', 'continue']).optional().meta({
      description:
        'The end when no further round is allowed. fail: the step fails; continue: it succeeds with the last output. Default fail.',
    }),
  })
  .meta({ id: 'Repeat' });
export type Repeat = z.infer<typeof Repeat>;

/** A question to a reviewer; the answer becomes the step's output. */
export const ReviewStep = z
  .strictObject({
    title: z.string().min(1).max(1_000).meta({ description: 'The question; it may hold {{ expressions }}.' }),
    schema: JsonObject.optional().meta({ description: 'JSON Schema of the answer. Default: anything.' }),
    timeout: Duration.optional().meta({
      description: 'The time to wait for an answer, at most 90d. Default 24h.',
    }),
    on_timeout: z.enum(['fail', 'skip']).optional().meta({
      description: 'fail: the step fails if no answer comes in time; skip: it is skipped. Default fail.',
    }),
  })
  .meta({ id: 'ReviewStep' });

/** A wait for an outside event; its payload becomes the step's output. */
export const EventStep = z
  .strictObject({
    name: EventName.meta({ description: 'The name of the event, which `POST /v1/events/NAME` sends.' }),
    key: z.string().min(1).max(1_024).optional().meta({
      description:
        'The key of the event, of at most 256 characters; it may hold {{ expressions }}. Default: an event without a key.',
    }),
    schema: JsonObject.optional().meta({
      description:
        'JSON Schema of the payload. A sender whose payload differs is refused. Default: anything.',
    }),
    timeout: Duration.optional().meta({
      description: 'The time to wait for the event, at most 90d. Default 24h.',
    }),
    on_timeout: z.enum(['fail', 'continue']).optional().meta({
      description:
        'fail: the step fails if no event comes in time; continue: it succeeds, and its output is null. Default fail.',
    }),
  })
  .meta({ id: 'EventStep' });

/** The condition for starting a step, once all its dependencies are done. */
export const RunIf = z
  .enum(['all_succeeded', 'any_succeeded', 'all_done', 'any_failed'])
  .meta({ id: 'RunIf' });
export type RunIf = z.infer<typeof RunIf>;

/** The kind of a step: exactly one of six. The core checks it; the schema for editors states it. */
const stepKinds = {
  capability: CapabilityName.optional().meta({ description: 'The capability that the step calls.' }),
  pipeline: PipelineReference.optional().meta({
    description:
      "The pipeline of a child run, name@version or name@alias. `input` is its job; its output is the step's output.",
  }),
  wait: Duration.optional().meta({ description: 'The step waits for this long.' }),
  review: ReviewStep.optional().meta({
    description: "A question to a reviewer; the answer becomes the step's output.",
  }),
  event: EventStep.optional().meta({
    description: "The step waits for an outside event; its payload becomes the step's output.",
  }),
  set: JsonObject.optional().meta({
    description:
      "Values that become the step's output; strings may hold {{ expressions }}. No instance is called.",
  }),
};

/** An object with expressions, or one expression that gives an object. */
const StepInput = z
  .unknown()
  .check(({ value, issues }) => {
    if (typeof value === 'string' && /^\s*\{\{[\s\S]*\}\}\s*$/.test(value)) return;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return;
    issues.push({ code: 'invalid_type', expected: 'object', input: value });
  })
  .meta({
    id: 'StepInput',
    anyOf: [
      { type: 'object', additionalProperties: true },
      { type: 'string', pattern: '^\\{\\{.*\\}\\}$' },
    ],
  }) as z.ZodType<JsonObject | string>;

export const StepDefinition = z
  .strictObject({
    id: StepId.meta({
      description:
        'Its name in `depends_on` and in expressions: a letter or _, then letters, digits, _ or -.',
    }),
    ...stepKinds,
    description: z.string().max(10_000).optional().meta({ description: 'For people.' }),
    depends_on: z
      .array(StepId)
      .max(mostSteps)
      .refine((ids) => new Set(ids).size === ids.length, { error: 'names a step twice' })
      .optional()
      .meta({
        description: 'Ids of steps that must end first; steps that its expressions mention are added.',
        uniqueItems: true,
      }),
    when: z.string().min(1).max(65_536).optional().meta({
      description:
        'A condition, without {{ }}; when it is false, the step is skipped. With `item` or `index`, it is judged for each item of `for_each`.',
    }),
    run_if: RunIf.optional().meta({
      description:
        'The condition to start, once its dependencies have ended. Default all_succeeded: the step is skipped if a dependency was skipped.',
    }),
    first: z.number().int().min(1).max(mostSteps).optional().meta({
      description:
        'The step starts as soon as this many steps of its `depends_on` have succeeded. The others, and the steps that only they need, are cancelled. Default: it waits for all.',
    }),
    for_each: ForEach.optional().meta({
      description:
        'The step runs once per item of a list. Its output is the list of the outputs, in item order.',
    }),
    repeat: Repeat.optional().meta({
      description:
        'The step is executed in rounds until a condition holds. Its output is the output of the last round.',
    }),
    input: StepInput.optional().meta({
      description:
        'The input of the call; strings may hold {{ expressions }}. Or one expression that gives all of it. Default {}.',
    }),
    ...stepSettings,
    total_timeout: Duration.optional().meta({
      description:
        'Limit of the step with all its attempts, at most 7d. Waiting for reviews, budgets, capabilities and free slots does not count. Default 1h, or the time of all attempts and pauses of `retry` if that is more.',
    }),
    on_error: z.enum(['fail', 'continue']).optional().meta({
      description: 'continue: the run continues when the step fails. Default fail.',
    }),
    capability_version: z.string().min(1).max(128).optional().meta({
      description: "Semver range that an instance's version must satisfy. Default: any.",
    }),
    tags: Tags.optional().meta({ description: 'Tags that an instance must all carry.' }),
    affinity: Affinity.optional().meta({
      description:
        'A text with expressions over `input`, the input of the call: the key of what it needs loaded. Default: the key that the capability declares.',
    }),
    wait_for_capability: Duration.optional().meta({
      description: 'The time to wait for a registered instance. Default 0s.',
    }),
    allow_output: z.boolean().optional().meta({
      description: 'A reviewer may give the output instead of an input. Default false.',
    }),
    optional: z.boolean().optional().meta({ description: 'A reviewer may skip it. Default false.' }),
  })
  .meta({ id: 'StepDefinition', oneOf: Object.keys(stepKinds).map((kind) => ({ required: [kind] })) });
export type StepDefinition = z.infer<typeof StepDefinition>;

/** Maximum number of parallel runs with the same key. */
export const Concurrency = z
  .strictObject({
    key: z.string().min(1).max(1_024).meta({
      description: 'Runs with the same key count together. The key may hold expressions over `job`.',
    }),
    limit: z.number().int().min(1).max(1_000).meta({ description: 'Runs that are open in parallel.' }),
    on_limit: z.enum(['queue', 'reject', 'cancel_oldest']).optional().meta({
      description:
        'queue: a run above the limit waits; reject: it is refused; cancel_oldest: it takes the place of the oldest, which is cancelled. Default queue.',
    }),
  })
  .meta({ id: 'Concurrency' });

export const PipelineDefinition = z
  .strictObject({
    pipeline: PipelineName.meta({ description: 'Its name: letters, digits, _ or -, at most 64.' }),
    version: VersionText.meta({
      description: 'Versions are immutable: different content needs a new version.',
    }),
    description: z.string().max(10_000).optional().meta({ description: 'For people.' }),
    job_schema: JsonObject.optional().meta({
      description: 'JSON Schema that the job of a run must match. Default: any object.',
    }),
    defaults: z.strictObject(stepSettings).optional().meta({
      description: 'Settings of steps that do not set their own.',
    }),
    budget_ceiling_usd: Usd.optional().meta({
      description: 'The ceiling of a whole run in USD, unless the request sets another. Default: none.',
    }),
    priority: Priority.optional().meta({
      description: 'The priority of its runs, unless the request sets another. Default standard.',
    }),
    concurrency: Concurrency.optional().meta({
      description: 'The limit of open runs with the same key. Default: any number.',
    }),
    timeout: Duration.optional().meta({ description: 'Limit of a whole run, at most 7d. Default: none.' }),
    labels: Labels.optional().meta({
      description: 'Text by name, carried by its runs; it may hold {{ expressions }} over `job`.',
    }),
    steps: z.array(StepDefinition).min(1).max(mostSteps).meta({
      description:
        'A step starts as soon as its dependencies allow. Of steps that become ready together, the first in this list starts first.',
    }),
    output: Json.optional().meta({
      description:
        "The run's output: any JSON with {{ expressions }}. Default: the outputs of the last steps, by id.",
    }),
  })
  .meta({ id: 'PipelineDefinition', title: 'Capstan pipeline' });
export type PipelineDefinition = z.infer<typeof PipelineDefinition>;
