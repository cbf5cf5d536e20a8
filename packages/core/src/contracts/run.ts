/** Runs: submitted, queried and shown. */

import { z } from 'zod';
import { RouteDispatch } from './decision.ts';
import { PipelineDefinition } from './pipeline.ts';
import {
  Failure,
  Instant,
  Json,
  JsonObject,
  Labels,
  ListQuery,
  listOf,
  PipelineName,
  Priority,
  StepId,
  Usd,
  VersionText,
} from './primitives.ts';
import { checkAll, needsOneOf, notBoth, sayAll } from './rules.ts';
import { Awaiting, RunStep, StepState } from './run-step.ts';

export const RunState = z
  .enum(['queued', 'running', 'paused', 'cancelling', 'succeeded', 'failed', 'cancelled'])
  .meta({ id: 'RunState' });
export type RunState = z.infer<typeof RunState>;

export const terminalRunStates: ReadonlySet<RunState> = new Set(['succeeded', 'failed', 'cancelled']);

const runRules = [
  needsOneOf(['pipeline', 'definition']),
  notBoth('pipeline', 'definition'),
  notBoth('alias', 'version'),
  notBoth('job', 'job_id'),
];

/** Body of `POST /v1/runs`: a stored pipeline by name, or a definition; a job, or a job's id. */
export const RunRequest = z
  .strictObject({
    pipeline: PipelineName.optional(),
    version: VersionText.optional(),
    /** Instead of a version. Default: latest. */
    alias: PipelineName.optional(),
    definition: PipelineDefinition.optional(),
    job: JsonObject.optional(),
    job_id: z.string().max(128).optional(),
    priority: Priority.optional(),
    budget_ceiling_usd: Usd.optional(),
    labels: Labels.optional(),
  })
  .check(checkAll(runRules))
  .meta({ id: 'RunRequest', ...sayAll(runRules) });
export type RunRequest = z.infer<typeof RunRequest>;

const RunLinks = z.strictObject({
  self: z.string(),
  events: z.string(),
  console: z.string().optional(),
  temporal: z.string().optional(),
});

/**
 * A ladder with the same failure as one of the run's own. The run's ladder waits for its end before it asks a model or
 * a person. `review_id`: its open review.
 */
export const RunFollows = z
  .strictObject({
    escalation_id: z.string(),
    run_id: z.string().optional(),
    step_id: StepId.optional(),
    review_id: z.string().optional(),
  })
  .meta({ id: 'RunFollows' });
export type RunFollows = z.infer<typeof RunFollows>;

/**
 * Why a queued run has not begun. `concurrency`: runs with the same key come first; `temporal`: Temporal has not accepted
 * its start yet; `worker`: no worker has begun its first step.
 */
export const RunQueue = z
  .strictObject({
    reason: z.enum(['concurrency', 'temporal', 'worker']),
    /** For `concurrency`, with the fields below: the key that the runs share. */
    key: z.string().optional(),
    /** The most open runs with the key. */
    limit: z.number().int().optional(),
    /** Its place among the waiting runs with the key; 1 is next. */
    place: z.number().int().optional(),
    /** Open runs with the key that it waits for, the oldest first; at most three. */
    holders: z.array(z.string()).optional(),
  })
  .meta({ id: 'RunQueue' });
export type RunQueue = z.infer<typeof RunQueue>;

/**
 * Temporal repeats a task of the run's workflow, and each time it fails: a payload cannot be decrypted, a newer worker is
 * needed, or a history does not fit. The run continues when the cause is mended.
 */
export const StalledRun = z
  .strictObject({
    /** Why the task fails. */
    message: z.string(),
    since: Instant,
    /** The key by which the run was started, and which `PAYLOAD_KEYS` of the server lacks. The next task fails. */
    missing_key: z.string().optional(),
  })
  .meta({ id: 'StalledRun' });
export type StalledRun = z.infer<typeof StalledRun>;

/** Steps counted by state; a step with `for_each` counts as one. */
export const StepCounts = z.partialRecord(StepState, z.number().int());

/** The actor of a request: a key or a person. */
const Actor = z.strictObject({
  id: z.string(),
  /** The name of the key or person; absent when it is no longer known. */
  name: z.string().optional(),
});

/** The requested cancel. */
const RunCancel = z.strictObject({
  /** Absent: Capstan itself, because the run or the step that started this run has ended. */
  by: Actor.optional(),
  reason: z.string().optional(),
  mode: z.enum(['graceful', 'terminate']),
  requested_at: Instant,
});

/** What a paused run still does, and what waits for the resume. */
export const RunPause = z
  .strictObject({
    since: Instant,
    /** The actor of the pause. */
    by: Actor.optional(),
    /** Calls that are open on an instance, and finish; oldest first, at most 100. */
    open_calls: z.array(
      z.strictObject({
        step_id: StepId,
        /** Absent for a step without items. */
        item: z.number().int().optional(),
        capability: z.string(),
        endpoint: z.string(),
        started_at: Instant,
      }),
    ),
    /** The number of all open calls. */
    open_call_count: z.number().int(),
    /** Child runs that have not ended and are not paused themselves; at most 100. */
    open_child_runs: z.array(z.string()),
    /** Steps that have not ended, wait only for the resume and have no open call. */
    held_steps: z.number().int(),
  })
  .meta({ id: 'RunPause' });
export type RunPause = z.infer<typeof RunPause>;

const runFields = {
  run_id: z.string(),
  job_id: z.string(),
  pipeline: PipelineName,
  version: VersionText,
  state: RunState,
  priority: Priority,
  budget_ceiling_usd: z.number().nullable(),
  cost_usd: z.number(),
  reserved_usd: z.number(),
  labels: z.record(z.string(), z.string()),
  error: Failure.optional(),
  /** The run that this one repeats. */
  rerun_of: z.string().optional(),
  /** The newest run that repeats this one. */
  superseded_by: z.string().optional(),
  /** The step that started this run. */
  parent: z.strictObject({ run_id: z.string(), step_id: StepId, item: z.number().int() }).optional(),
  schedule_id: z.string().optional(),
  /** The moment for which its schedule planned it. */
  scheduled_at: Instant.optional(),
  created_at: Instant,
  started_at: Instant.nullable(),
  finished_at: Instant.nullable(),
  /** Reasons why its steps, and those of child runs, wait; without duplicates. */
  awaiting: z.array(Awaiting).optional(),
  follows: RunFollows.optional(),
  queue: RunQueue.optional(),
  stalled: StalledRun.optional(),
};

export const RunSummary = z
  .strictObject({
    ...runFields,
    step_counts: StepCounts,
    /** Items of its steps counted by final state; absent unless the run succeeded and has items. */
    item_counts: StepCounts.optional(),
  })
  .meta({ id: 'RunSummary' });
export type RunSummary = z.infer<typeof RunSummary>;
export const RunList = listOf(RunSummary).meta({ id: 'RunList' });

export const Run = z
  .strictObject({
    ...runFields,
    /** The actor of the start; absent when a step or a schedule started the run. */
    started_by: Actor.optional(),
    cancel: RunCancel.optional(),
    /** Present while the run is paused. */
    pause: RunPause.optional(),
    output: Json.optional(),
    /**
     * The dispatch of steps whose definition leaves it open, decided at the start of the run; absent without such
     * steps.
     */
    dispatch: z.array(RouteDispatch).optional(),
    steps: z.array(RunStep),
    links: RunLinks,
  })
  .meta({ id: 'Run' });
export type Run = z.infer<typeof Run>;

/** `name=value`, parsed into name and value. */
const LabelFilter = z
  .string()
  .max(321)
  .regex(/^[^=]{1,64}=/, { error: 'a label filter has the form key=value' })
  .transform((text): readonly [name: string, value: string] => {
    const at = text.indexOf('=');
    return [text.slice(0, at), text.slice(at + 1)];
  });

export const RunQuery = ListQuery.extend({
  pipeline: PipelineName.optional(),
  state: RunState.optional(),
  awaiting: Awaiting.optional().meta({
    description: 'The reason why one of its steps, or of its child runs, is waiting.',
  }),
  q: z.string().min(1).max(128).optional().meta({
    description:
      "Part of the pipeline's name, of a label as `name=value`, or of the run's error as `code: message`; or the begin of the run's id. A page searches at most 10,000 runs, so it may be empty and have a next page.",
  }),
  label: LabelFilter.optional(),
  schedule_id: z.string().max(128).optional(),
  since: Instant.optional(),
  until: Instant.optional(),
  order: z.enum(['newest', 'oldest']).default('newest').meta({
    description: 'oldest, with a state: the run that has been in it longest comes first',
  }),
  superseded: z.enum(['none', 'only', 'any']).optional().meta({
    description:
      'none: without runs that another run repeats; only: just those. Default any; for bulk reruns and raises none.',
  }),
  parent: z.literal('none').optional().meta({ description: 'none: only top-level runs, without child runs' }),
}).strict();
export type RunQuery = z.infer<typeof RunQuery>;
