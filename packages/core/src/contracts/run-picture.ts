/** The graph of a run, known from its start; its calls over time; and a summary of many runs over time. */
import { z } from 'zod';
import { PipelineDefinition } from './pipeline.ts';
import { stepKindFields } from './pipeline-answers.ts';
import { Instant, Json, StepId } from './primitives.ts';
import { RunQuery, RunState } from './run.ts';

export const RunGraph = z
  .strictObject({
    definition: PipelineDefinition,
    /** A step with `for_each` counts as one. */
    steps: z.array(
      z.strictObject({ id: StepId, ...stepKindFields, for_each: Json.optional(), repeat: Json.optional() }),
    ),
    edges: z.array(z.strictObject({ from: StepId, to: StepId })),
  })
  .meta({ id: 'RunGraph' });
export type RunGraph = z.infer<typeof RunGraph>;

/** Calls of one page of a timeline. */
export const timelinePage = 10_000;

/**
 * `level`: of a model call for the step; null: a call of the step itself. `ready_at`: since when it waited only for an
 * instance. `expected_ms`, `expected_usd`: the router's estimate at its choice. `error`: the failed call's code; null
 * while it is open and when it succeeded.
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

/**
 * Answer of `GET /v1/runs/{id}/timeline`: a row for each call, ordered by start, with its values in the order of
 * `columns`.
 */
export const RunTimeline = z
  .strictObject({
    columns: z.array(TimelineColumn),
    rows: z.array(z.array(z.union([z.string(), z.number(), z.null()]))),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'RunTimeline' });
export type RunTimeline = z.infer<typeof RunTimeline>;

/** The filters of the list. Without a state: the answer counts by it. */
export const RunsSummaryQuery = RunQuery.omit({ state: true, order: true, limit: true, cursor: true }).extend(
  {
    /** Default: a day before `until`. */
    since: Instant.optional(),
    /** Default: now. */
    until: Instant.optional(),
    buckets: z.coerce.number().int().min(1).max(500).default(48),
  },
);
export type RunsSummaryQuery = z.infer<typeof RunsSummaryQuery>;

/** Answer of `GET /v1/runs/summary`: runs by their time of creation, in buckets of equal length. */
export const RunsSummary = z
  .strictObject({
    buckets: z.array(
      z.strictObject({
        /** Start of the bucket. */
        at: Instant,
        by_state: z.partialRecord(RunState, z.number().int()),
        /** The cost so far of these runs' calls. */
        cost_usd: z.number(),
      }),
    ),
    /** Present if a search left out the runs of the time before: it examines the newest 10,000. */
    searched_since: Instant.optional(),
  })
  .meta({ id: 'RunsSummary' });
export type RunsSummary = z.infer<typeof RunsSummary>;
