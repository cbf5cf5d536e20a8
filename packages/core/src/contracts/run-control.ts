/** Control of runs: cancel, repeat, change the budget, start many. */

import { z } from 'zod';
import { mostSteps } from './limits.ts';
import { JsonObject, listOf, PipelineName, Priority, StepId, Usd, VersionText } from './primitives.ts';
import { Problem } from './problem.ts';
import { RunQuery, RunRequest, RunState } from './run.ts';

export const CancelRequest = z
  .strictObject({
    reason: z.string().max(1_000).optional(),
    /** graceful: running steps are cancelled and awaited. terminate: the run ends immediately. */
    mode: z.enum(['graceful', 'terminate']).default('graceful'),
  })
  .meta({ id: 'CancelRequest' });
export type CancelRequest = z.infer<typeof CancelRequest>;

/** Body of `POST /v1/runs/{id}/rerun`: a new run; without `from` and `only_failed` every step is repeated. */
export const RerunRequest = z
  .strictObject({
    /** These steps and all their dependents are repeated; others keep their results, with items that failed and were tolerated. */
    from: z.array(StepId).min(1).max(mostSteps).optional(),
    /** Steps and items that succeeded keep their results, and child runs continue where they failed. */
    only_failed: z.boolean().optional(),
    /** Another job; steps that refer to a difference are repeated. */
    job: JsonObject.optional(),
    /** Another version of the pipeline; changed steps are repeated. */
    version: VersionText.optional(),
    /** Looks aliases of child pipelines up again; absent or false: the versions of the repeated run. */
    look_up_aliases: z.boolean().optional(),
    /** Maximum cost of the new run; null = no ceiling, absent = the ceiling of the repeated run. */
    budget_ceiling_usd: Usd.nullable().optional(),
    /** Priority of the new run, such as batch for free instances; absent = that of the repeated run. */
    priority: Priority.optional(),
    /** Only list the steps that would be repeated. */
    preview: z.boolean().optional(),
  })
  .meta({ id: 'RerunRequest' });
export type RerunRequest = z.infer<typeof RerunRequest>;

/** Steps that are repeated, and the part of their work that is kept. */
const RepeatedStep = z
  .strictObject({
    id: StepId,
    reason: z.string(),
    /** For a step with `for_each` whose items are known before it runs. */
    items: z
      .strictObject({
        all: z.number().int(),
        kept: z.number().int(),
        /** The items that are repeated, from 1 on: `3,17-20`; empty for none. */
        repeated: z.string(),
      })
      .optional(),
  })
  .meta({ id: 'RepeatedStep' });

const keptSteps = {
  reused: z.array(StepId),
  /** Steps that were skipped and, because nothing before them changes, are skipped again. */
  skipped: z.array(StepId),
  executed: z.array(RepeatedStep),
};

/** A child run of the repeated run; the new child run keeps its results and repeats what failed. */
const ContinuedRun = z
  .strictObject({
    run_id: z.string(),
    /** The steps and items that lead to it, from the top: `clips/3 › cover`. */
    place: z.string(),
    pipeline: PipelineName,
    version: VersionText,
    ...keptSteps,
  })
  .meta({ id: 'ContinuedRun' });

export const RerunPreview = z
  .strictObject({
    ...keptSteps,
    /** At most 200, each after its parent. */
    runs: z.array(ContinuedRun),
    /**
     * Calls of capabilities if each succeeds at the first attempt. max is null if items, or steps of new child runs,
     * are known only later.
     */
    calls: z.strictObject({ min: z.number().int(), max: z.number().int().nullable() }),
  })
  .meta({ id: 'RerunPreview' });
export type RerunPreview = z.infer<typeof RerunPreview>;

/** Body of `POST /v1/runs/{id}/budget` and `POST /v1/runs/bulk/raise`; null = no ceiling. */
export const RunBudgetRequest = z
  .strictObject({ budget_ceiling_usd: Usd.nullable() })
  .meta({ id: 'RunBudgetRequest' });
export type RunBudgetRequest = z.infer<typeof RunBudgetRequest>;

/** Body of `POST /v1/runs/bulk`. Each run is accepted or refused on its own. */
export const BulkRequest = z
  .strictObject({
    runs: z.array(RunRequest).min(1).max(1_000),
    /**
     * The most that all these runs, their child runs and reruns may cost together. The runs get the label `batch` with
     * the id of the answer; its budget by total has this limit.
     */
    budget_all_usd: Usd.min(1e-9).optional(),
  })
  .meta({ id: 'BulkRequest' });
export type BulkRequest = z.infer<typeof BulkRequest>;

export const BulkAnswer = z
  .strictObject({
    /** With `budget_all_usd`, if a run was accepted: the runs' label `batch`. Their budget is `label:batch=<this>`. */
    batch: z.string().optional(),
    items: z.array(
      z.strictObject({
        /** The status of this run's own `POST /v1/runs`. */
        status: z.number().int(),
        run_id: z.string().optional(),
        error: Problem.optional(),
      }),
    ),
  })
  .meta({ id: 'BulkAnswer' });
export type BulkAnswer = z.infer<typeof BulkAnswer>;

/**
 * Query of `POST /v1/runs/bulk/cancel`, `…/rerun` and `…/raise`: one page of the runs that match, without child runs. At least one
 * filter is needed.
 */
export const RunSelection = RunQuery.omit({ parent: true }).extend({
  run_id: z
    .string()
    .regex(/^[\w.-]{1,64}(,[\w.-]{1,64}){0,199}$/, { error: 'one to 200 ids of runs, separated by commas' })
    .optional()
    .meta({ description: 'These runs alone, separated by commas, at most 200.' }),
});
export type RunSelection = z.infer<typeof RunSelection>;

/** Answer for one page of runs. Each run is changed or refused on its own. */
export const RunActs = listOf(
  z.strictObject({
    /** The status that this run's own request would have. */
    status: z.number().int(),
    run_id: z.string(),
    /** The new run of a rerun, or of a raise of a run that has ended. */
    new_run_id: z.string().optional(),
    error: Problem.optional(),
  }),
).meta({ id: 'RunActs' });
export type RunActs = z.infer<typeof RunActs>;

/** Body of `POST /v1/runs/bulk/rerun`: what all new runs have in common. */
export const BulkRerunRequest = RerunRequest.omit({ from: true, preview: true }).meta({
  id: 'BulkRerunRequest',
});
export type BulkRerunRequest = z.infer<typeof BulkRerunRequest>;

export const RunCountQuery = RunQuery.omit({ q: true, order: true, limit: true, cursor: true });
export type RunCountQuery = z.infer<typeof RunCountQuery>;

/** Answer of `GET /v1/runs/count`. */
export const RunCount = z
  .strictObject({
    count: z.number().int(),
    /** States without a run are absent. */
    by_state: z.partialRecord(RunState, z.number().int()),
  })
  .meta({ id: 'RunCount' });
export type RunCount = z.infer<typeof RunCount>;

/** The unit of a parent's workflow that has started a child run. */
export interface ParentUnit {
  readonly workflow_id: string;
  readonly step_id: string;
  readonly item: number;
}
