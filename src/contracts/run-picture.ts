/** A run as pictures show it: its whole graph from the first moment, and its calls in time; and many runs in time. */
import { z } from 'zod';
import { PipelineDefinition, stepKindFields } from './pipeline.ts';
import { Instant, Json, PipelineName, StepId } from './primitives.ts';
import { RunState } from './run.ts';
import { LabelFilter } from './run-query.ts';

export const RunGraph = z
  .strictObject({
    definition: PipelineDefinition,
    /** A step with `for_each` is one. */
    steps: z.array(z.strictObject({ id: StepId, ...stepKindFields, for_each: Json.optional() })),
    edges: z.array(z.strictObject({ from: StepId, to: StepId })),
  })
  .meta({ id: 'RunGraph' });
export type RunGraph = z.infer<typeof RunGraph>;

/** Calls of one page of a timeline. */
export const timelinePage = 10_000;

/**
 * `level`: of a model that was asked for a step; null: a call of the step itself. `ready_at`: since when nothing but an
 * instance was missing. `expected_ms`, `expected_usd`: what the router thought when it chose. `error`: the code with
 * which the call failed; null while it is open and when it succeeded.
 */
export const TimelineColumn = z
  .enum([
    'step_id',
    'item',
    'attempt_id',
    'decision_id',
    'revision',
    'level',
    'endpoint',
    'state',
    'ambiguity',
    'ready_at',
    'started_at',
    'finished_at',
    'expected_ms',
    'expected_usd',
    'reserved_usd',
    'cost_usd',
    'certainty',
    'error',
  ])
  .meta({ id: 'TimelineColumn' });
export type TimelineColumn = z.infer<typeof TimelineColumn>;

/** Answer of `GET /v1/runs/{id}/timeline`: a row for each call, in the order of their starts, in the order of `columns`. */
export const RunTimeline = z
  .strictObject({
    columns: z.array(TimelineColumn),
    rows: z.array(z.array(z.union([z.string(), z.number(), z.null()]))),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'RunTimeline' });
export type RunTimeline = z.infer<typeof RunTimeline>;

export const RunsSummaryQuery = z.strictObject({
  /** A day before `until` by default. */
  since: Instant.optional(),
  /** Now by default. */
  until: Instant.optional(),
  pipeline: PipelineName.optional(),
  label: LabelFilter.optional(),
  buckets: z.coerce.number().int().min(1).max(500).default(48),
});
export type RunsSummaryQuery = z.infer<typeof RunsSummaryQuery>;

/** Answer of `GET /v1/runs/summary`: runs by the time at which they were made, in buckets of one length. */
export const RunsSummary = z
  .strictObject({
    buckets: z.array(
      z.strictObject({
        /** Its begin. */
        at: Instant,
        by_state: z.partialRecord(RunState, z.number().int()),
        /** What the calls of these runs have cost until now. */
        cost_usd: z.number(),
      }),
    ),
  })
  .meta({ id: 'RunsSummary' });
export type RunsSummary = z.infer<typeof RunsSummary>;
