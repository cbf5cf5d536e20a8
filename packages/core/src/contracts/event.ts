/** The events of a run: its log, as pages and as server-sent events, and the stream of a project. */
import { z } from 'zod';
import type { Instance } from './capability.ts';
import type { Budget } from './money.ts';
import { Failure, Instant, Json, ListQuery, listOf, PipelineName, StepId } from './primitives.ts';
import { Review, ReviewStanding } from './review.ts';
import { RunFollows, RunState, StalledRun, StepCounts } from './run.ts';
import { Awaiting } from './run-step.ts';

export const EventType = z
  .enum([
    'run.queued',
    'run.started',
    'run.paused',
    'run.resumed',
    'run.cancelling',
    'run.succeeded',
    'run.failed',
    'run.cancelled',
    'run.budget_reached',
    'run.budget_raised',
    'step.started',
    'step.routed',
    'step.progress',
    'step.log',
    'step.round',
    'step.retrying',
    'step.waiting',
    'step.answered',
    'step.escalated',
    'step.in_review',
    'step.reviewed',
    'step.succeeded',
    'step.failed',
    'step.skipped',
    'step.cancelled',
    'step.reused',
    'step.cached',
  ])
  .meta({ id: 'EventType' });
export type EventType = z.infer<typeof EventType>;

/** The level of a message that a capability logs during a call, in order of severity. */
export const LogLevel = z.enum(['debug', 'info', 'warn', 'error']).meta({ id: 'LogLevel' });
export type LogLevel = z.infer<typeof LogLevel>;

/** The data of `step.log`. */
export interface StepLogData {
  readonly level: LogLevel;
  readonly message: string;
  /** The endpoint of the instance. */
  readonly endpoint: string;
  /** The message is a piece of the answer's text, what has come since the piece before. */
  readonly delta?: true;
}

export const terminalEvents: ReadonlySet<EventType> = new Set([
  'run.succeeded',
  'run.failed',
  'run.cancelled',
]);

/** The number of an event in its run. */
export const Seq = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

export const EventQuery = z.strictObject({
  after: Seq.default(0).meta({
    description: 'The `seq` of the last event that you have. A cursor takes precedence.',
  }),
  limit: z.coerce.number().int().min(1).max(200).default(200),
  cursor: ListQuery.shape.cursor,
});
export type EventQuery = z.infer<typeof EventQuery>;

export const RunEvent = z
  .strictObject({
    /** Increases within a run; gaps mean nothing. */
    seq: z.number().int(),
    at: Instant,
    run_id: z.string(),
    type: EventType,
    step_id: StepId.optional(),
    /** The item of a step with `for_each`; absent for the step as a whole. */
    item: z.number().int().optional(),
    attempt: z.number().int().optional(),
    data: Json,
  })
  .meta({ id: 'RunEvent' });
export type RunEvent = z.infer<typeof RunEvent>;

/** `next_cursor` is null at the current end of the log; pass the last event's `seq` as `after` to continue later. */
export const EventPage = listOf(RunEvent).meta({ id: 'EventPage' });
export type EventPage = z.infer<typeof EventPage>;

// The stream of a project: one server-sent event per frame, named by its kind.

export const StreamTopic = z.enum(['runs', 'reviews', 'instances', 'budgets']).meta({ id: 'StreamTopic' });
export type StreamTopic = z.infer<typeof StreamTopic>;

const mostRuns = 50;

const Topics = z
  .string()
  .max(200)
  .default(StreamTopic.options.join(','))
  .transform((text) => text.split(',').filter((part) => part !== ''))
  .pipe(z.array(StreamTopic))
  .meta({
    override: {
      type: 'string',
      description: 'Some of runs, reviews, instances, budgets, separated by commas.',
    },
  });

const RunIds = z
  .union([z.string().max(128), z.array(z.string().max(128)).max(mostRuns)])
  .default([])
  .transform((ids) => [ids].flat())
  .meta({
    override: {
      type: 'array',
      items: { type: 'string' },
      description: 'Runs whose every event the stream sends.',
    },
  });

export const StreamQuery = z.strictObject({
  topics: Topics,
  run_id: RunIds,
  /** The `id` of an earlier frame. */
  after: z.string().max(60).optional(),
});
export type StreamQuery = z.infer<typeof StreamQuery>;

/** `run`: the state of a run. */
export const RunFrame = z
  .strictObject({
    run_id: z.string(),
    pipeline: PipelineName,
    state: RunState,
    /** Reasons why its steps wait, without duplicates. */
    awaiting: z.array(Awaiting),
    follows: RunFollows.optional(),
    stalled: StalledRun.optional(),
    error: Failure.optional(),
    cost_usd: z.number(),
    reserved_usd: z.number(),
    steps: StepCounts,
    item_counts: StepCounts.optional(),
  })
  .meta({ id: 'RunFrame' });
export type RunFrame = z.infer<typeof RunFrame>;

/** `review`: the state of a review. */
const ReviewFrame = ReviewStanding.extend({
  ...Review.pick({ kind: true, due_at: true, run_id: true }).shape,
}).meta({ id: 'ReviewFrame' });
type ReviewFrame = z.infer<typeof ReviewFrame>;

/** `reset`: events may be missing, so the client must reload its data. */
export type StreamFrame =
  | { readonly kind: 'run'; readonly data: RunFrame }
  | { readonly kind: 'step'; readonly data: RunEvent }
  | { readonly kind: 'review'; readonly data: ReviewFrame }
  | { readonly kind: 'instance'; readonly data: Instance }
  | { readonly kind: 'budget'; readonly data: Budget }
  | { readonly kind: 'reset'; readonly data: null };
