/** One line of a run's log, in pages and as server-sent events. */
import { z } from 'zod';
import { Instant, Json, listOf, StepId } from './primitives.ts';

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
    'step.retrying',
    'step.waiting',
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

export const terminalEvents: ReadonlySet<EventType> = new Set([
  'run.succeeded',
  'run.failed',
  'run.cancelled',
]);

export const RunEvent = z
  .strictObject({
    /** Grows within a run; gaps mean nothing. */
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

/** `next_cursor` is null at the end of what the log holds now; the last event's `seq`, given as `after`, reads on later. */
export const EventPage = listOf(RunEvent).meta({ id: 'EventPage' });
export type EventPage = z.infer<typeof EventPage>;
