/** What the stream of a project tells: one server-sent event each, named by its kind. */
import { z } from 'zod';
import type { Instance } from './capability.ts';
import type { RunEvent } from './event.ts';
import type { Budget } from './money.ts';
import { Failure, PipelineName } from './primitives.ts';
import { Review, ReviewStanding } from './review.ts';
import { Awaiting, RunFollows, RunState, StepCounts } from './run.ts';

export const StreamTopic = z.enum(['runs', 'reviews', 'instances', 'budgets']).meta({ id: 'StreamTopic' });
export type StreamTopic = z.infer<typeof StreamTopic>;

/** `run`: how a run stands. */
export const RunFrame = z
  .strictObject({
    run_id: z.string(),
    pipeline: PipelineName,
    state: RunState,
    /** What some of its steps wait for, each once. */
    awaiting: z.array(Awaiting),
    follows: RunFollows.optional(),
    error: Failure.optional(),
    cost_usd: z.number(),
    reserved_usd: z.number(),
    steps: StepCounts,
  })
  .meta({ id: 'RunFrame' });
export type RunFrame = z.infer<typeof RunFrame>;

/** `review`: how a question to a person stands. */
export const ReviewFrame = ReviewStanding.extend({
  ...Review.pick({ kind: true, due_at: true, run_id: true }).shape,
}).meta({ id: 'ReviewFrame' });
export type ReviewFrame = z.infer<typeof ReviewFrame>;

/** `reset`: something may have been missed, so what is shown is to be read again. */
export type StreamFrame =
  | { readonly kind: 'run'; readonly data: RunFrame }
  | { readonly kind: 'step'; readonly data: RunEvent }
  | { readonly kind: 'review'; readonly data: ReviewFrame }
  | { readonly kind: 'instance'; readonly data: Instance }
  | { readonly kind: 'budget'; readonly data: Budget }
  | { readonly kind: 'reset'; readonly data: null };
