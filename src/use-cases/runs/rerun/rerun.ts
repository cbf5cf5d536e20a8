/**
 * Repeats a run: the same job, or another one, with reusable results taken over by value. Preview and run decide by the
 * same rule, and a preview writes nothing.
 */

import type { ProblemItem } from '@capstan/core/contracts/problem';
import { type Run, terminalRunStates } from '@capstan/core/contracts/run';
import type { RerunPreview, RerunRequest } from '@capstan/core/contracts/run-control';
import type { ScheduleRequest } from '@capstan/core/contracts/schedule';
import { AppError, refuseRequest } from '@capstan/core/errors/app-error';
import { isInBatch } from '@capstan/core/money/scoped-budget';
import { createNameSuggester } from '@capstan/core/nearest-name';
import type { Ctx } from '../../../context.ts';
import type { Db } from '../../../db/connect.ts';
import {
  keepRepeated,
  lockSuperseded,
  type RepeatedRun,
  readRepeatedRun,
  takeOver,
} from '../../../db/run/rerun.ts';
import { readSchedule } from '../../../db/schedule.ts';
import {
  choiceOf,
  type KnownDefinition,
  type KnownDefinitions,
} from '../../../parts/definitions/known-definitions.ts';
import { deliverSoon } from '../../../parts/delivery/deliveries.ts';
import { answerOnce, type Idempotency, type KeepAnswer } from '../../idempotency.ts';
import { insertAdmittedRun } from '../admission.ts';
import { runStarts } from '../delivery.ts';
import { newJob, type PreparedRun, prepareRun, type RunJob } from '../preparation.ts';
import { newRunView, noSuchRun } from '../run-view.ts';
import type { Submission, SubmitCtx } from '../submission.ts';
import { planRerun, type RerunPlan } from './plan.ts';
import { describeRerun } from './preview.ts';

type RerunCtx = SubmitCtx & Pick<Ctx, 'media' | 'results'>;

export interface RerunOrder {
  readonly project_id: string;
  readonly run_id: string;
  readonly request: RerunRequest;
  readonly idempotency: Idempotency | null;
  /** Id of the submitting key or person. */
  readonly by: string;
  /** A run that another one repeats already is refused with `state_conflict`. */
  readonly onlyOnce?: boolean;
}

/** @throws AppError `request_invalid` for steps that the definition does not have */
function requireSteps(from: readonly string[], known: KnownDefinition): void {
  const ids = new Set(known.definition.steps.map(({ id }) => id));
  const suggest = createNameSuggester(ids);
  const errors = from.flatMap((id, index): ProblemItem[] => {
    if (ids.has(id)) return [];
    const suggestion = suggest(id);
    const found = { pointer: `/from/${index}`, code: 'unknown_step', message: `there is no step ${id}` };
    return [suggestion === undefined ? found : { ...found, suggestion }];
  });
  if (errors.length > 0) throw refuseRequest(errors);
}

interface RerunTarget {
  readonly version: string | undefined;
  /** Of a run that is a refused or missed start: the schedule as it is now, so that the cause may be mended. */
  readonly schedule: ScheduleRequest | undefined;
}

/** @throws AppError `not_found` */
function findDefinition(
  definitions: KnownDefinitions,
  { project_id, pipeline, digest }: RepeatedRun,
  { version, schedule }: RerunTarget,
): Promise<KnownDefinition> {
  if (version !== undefined) return definitions.find(project_id, pipeline, { version });
  if (schedule === undefined) return definitions.ofDigest(digest);
  return definitions.find(project_id, schedule.pipeline, choiceOf(schedule));
}

async function plan(ctx: RerunCtx, { project_id, run_id, request }: RerunOrder): Promise<RerunPlan> {
  const { definitions } = ctx;
  const { from = null, only_failed = false, version, job: otherJob, look_up_aliases = false } = request;
  const before = await readRepeatedRun(ctx.db, { project_id, run_id });
  if (before === undefined) throw noSuchRun(run_id);
  const schedule =
    before.failed_start_of === null ? undefined : await readSchedule(ctx.db, before.failed_start_of);
  const known = await findDefinition(definitions, before, { version, schedule: schedule?.body });
  if (from !== null) requireSteps(from, known);
  const givenJob = otherJob ?? schedule?.body.job;
  const job: RunJob =
    givenJob === undefined ? { job_id: before.job_id, body: before.job, isNew: false } : newJob(givenJob);
  const versions = look_up_aliases ? {} : before.versions;
  return planRerun(ctx, before, { known, job, from, onlyFailed: only_failed, versions });
}

/** Labels that the definition takes from the job are those of the new job; a batch keeps its runs. */
function withoutOpen(
  labels: RepeatedRun['labels'],
  { openLabels }: Pick<KnownDefinition, 'openLabels'>,
): RepeatedRun['labels'] {
  const open = new Set(openLabels.map(([name]) => name));
  return Object.fromEntries(
    Object.entries(labels).filter(([name, value]) => !open.has(name) || isInBatch(name, value)),
  );
}

/** The part of a new run that its plan decides. */
export function orderOf({ before, known, job, versions, ...plan }: RerunPlan) {
  const keepsSome = plan.reused.length > 0 || plan.executed.some(({ kept }) => kept.length > 0);
  return {
    known,
    isStored: true,
    job,
    labels: job.isNew ? withoutOpen(before.labels, known) : before.labels,
    rerun_of: before.run_id,
    ...(Object.keys(versions).length === 0 ? {} : { versions }),
    ...(keepsSome ? { reusedJobs: plan.reusedJobs } : {}),
  };
}

/**
 * Writes the new run with everything that it takes over. @throws AppError `not_found`, `concurrency_limit`,
 * `open_runs_limit`
 */
export async function insertRerun(
  trx: Db,
  prepared: PreparedRun,
  { plan, mostOpen }: { readonly plan: RerunPlan; readonly mostOpen: number | null },
): Promise<string> {
  const { before, reused, skipped, executed } = plan;
  if (!(await keepRepeated(trx, before.run_id))) throw noSuchRun(before.run_id);
  const { run_id: to } = await insertAdmittedRun(trx, prepared, mostOpen);
  await takeOver(trx, {
    from: before.run_id,
    to,
    reused,
    skipped,
    parts: executed.flatMap(({ id: step_id, kept }) =>
      kept.length === 0
        ? []
        : [{ step_id, items: kept.map(({ item }) => item), former_items: kept.map(({ former }) => former) }],
    ),
    continued: executed.flatMap(({ id: step_id, continued }) =>
      continued.map(({ item, earlier_run_id }) => ({ step_id, item, earlier_run_id })),
    ),
  });
  return to;
}

async function refuseSuperseded(trx: Db, runId: string): Promise<void> {
  const by = await lockSuperseded(trx, runId);
  if (by !== undefined) throw new AppError('state_conflict', `run ${runId} was repeated already, as ${by}`);
}

async function start(ctx: RerunCtx, order: RerunOrder, keep: KeepAnswer): Promise<Run> {
  const planned = await plan(ctx, order);
  const { run_id: from, state, budget_ceiling_usd: former } = planned.before;
  const { priority = planned.before.priority } = order.request;
  const { budget_ceiling_usd = former === null ? null : Number(former) } = order.request;
  if (!terminalRunStates.has(state)) {
    throw new AppError('state_conflict', `run ${from} is ${state}; only a run that has ended can run again`);
  }
  const prepared = await prepareRun(ctx, order.project_id, {
    ...orderOf(planned),
    priority,
    started_by: order.by,
    budget_ceiling_usd,
  });
  const run = newRunView(prepared.row, planned.known.definition, planned);
  await ctx.db.transaction(async (trx) => {
    await keep(trx, 202, run);
    if (order.onlyOnce === true) await refuseSuperseded(trx, from);
    await insertRerun(trx, prepared, { plan: planned, mostOpen: ctx.config.OPEN_RUNS_PER_PROJECT });
  });
  return run;
}

/** @throws AppError `not_found`, `request_invalid` */
export async function previewRerun(ctx: RerunCtx, order: RerunOrder): Promise<RerunPreview> {
  return describeRerun(ctx, await plan(ctx, order));
}

/** @throws AppError `not_found`, `state_conflict` before it has ended, `open_runs_limit`, `request_invalid`, `job_invalid` */
export async function rerunRun(ctx: RerunCtx, order: RerunOrder): Promise<Submission> {
  const { answer: run, replayed } = await answerOnce<Run>(ctx.db, {
    project_id: order.project_id,
    request: `POST /v1/runs/${order.run_id}/rerun`,
    idempotency: order.idempotency,
    work: (keep) => start(ctx, order, keep),
  });
  if (!replayed) void deliverSoon(ctx, runStarts, { run_id: run.run_id });
  return { run, replayed };
}
