/**
 * Turns a start of a schedule into a run, by the same path as the API, and cancels such a run when its schedule
 * requires it. The row decides: a schedule that was deleted or paused meanwhile starts nothing. A repeated start gets
 * the first one's run.
 *
 * No start is silent. One that is refused is a run in state failed, with the reason; one that the overlap policy skips
 * is counted on the schedule.
 */

import { dayAt } from '@capstan/core/calendar/days';
import { previousStart } from '@capstan/core/calendar/starts';
import type { ErrorCode } from '@capstan/core/contracts/errors';
import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import type { Failure } from '@capstan/core/contracts/primitives';
import type { RunRequest } from '@capstan/core/contracts/run';
import type { ScheduleRequest } from '@capstan/core/contracts/schedule';
import { AppError } from '@capstan/core/errors/app-error';
import { delimiters } from '@capstan/core/expression/language';
import { ceilingOfRun, priorityOfRun } from '@capstan/core/run/step-rules';
import type { Metrics } from '@capstan/core/telemetry/telemetry';
import type { CancelRunRequest, ScheduledStart, ScheduledSubmission } from '@capstan/core/workflow-payloads';
import type { Ctx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import { findDigest, readDefinition } from '../../db/pipeline.ts';
import { finishRun, insertRuns } from '../../db/run/run.ts';
import { requestCancel } from '../../db/run/run-control.ts';
import {
  findOpenRun,
  findScheduledRun,
  lockSchedule,
  noteSkip,
  readSchedule,
  type ScheduleKey,
  type ScheduleRow,
} from '../../db/schedule.ts';
import { choiceOf } from '../../parts/definitions/known-definitions.ts';
import { newId } from '../../parts/ids.ts';
import { insertAdmittedRun } from '../runs/admission.ts';
import { type IntakeCtx, newJob } from '../runs/preparation.ts';
import { prepareOriginatedRun } from '../runs/submission.ts';

const outcomes = ['started', 'refused', 'missed', 'skipped'] as const;

export function countStarts(metrics: Metrics, outcome: (typeof outcomes)[number], starts = 1): void {
  metrics.add('schedule_starts_total', { outcome }, starts);
}

/** The counters exist before the first start, so that an alert sees the first refusal. */
export function announceStarts(metrics: Metrics): void {
  for (const outcome of outcomes) countStarts(metrics, outcome, 0);
}

export function toRequest(body: ScheduleRequest): RunRequest {
  const { pipeline, version, alias, job, priority, budget_ceiling_usd, labels } = body;
  return { pipeline, version, alias, job, priority, budget_ceiling_usd, labels };
}

/**
 * Locks the schedule until the transaction ends, so that its starts decide one after the other.
 * @returns why its policy skips a start now; null: it does not
 */
export async function explainSkip(trx: Db, key: ScheduleKey): Promise<string | null> {
  const row = await lockSchedule(trx, key);
  if (row?.body.overlap !== 'skip') return null;
  const open = await findOpenRun(trx, key);
  return open === undefined ? null : `run ${open} of this schedule is still open, and overlap is skip`;
}

const limitCodes: ReadonlySet<ErrorCode> = new Set(['concurrency_limit', 'open_runs_limit']);

/** A limit that is reached is an answer; other transient failures are not. */
export function isRefusal(error: unknown): error is AppError {
  return error instanceof AppError && (!error.retryable || limitCodes.has(error.code));
}

export function isLimit({ code }: AppError): boolean {
  return limitCodes.has(code);
}

async function findSubmitted(db: Db, start: ScheduledStart): Promise<ScheduledSubmission | undefined> {
  const found = await findScheduledRun(db, start);
  if (found === undefined) return undefined;
  const { run_id, is_untold } = found;
  return is_untold ? { run_id } : { run_id, has_ended: true };
}

/**
 * The origin of a run of a schedule: whose it is, its time and date, and the start before. The date is kept, since
 * expressions know no zone and the schedule may move to another. @param at RFC 3339
 */
export function originAt({ schedule_id, body, created_by: key_id }: ScheduleRow, at: string) {
  const { cron, timezone } = body;
  const ms = Date.parse(at);
  const start = previousStart(cron, { timezone, before: ms });
  const period = start === null ? {} : { period_start: new Date(start).toISOString() };
  return { schedule_id, key_id, scheduled_at: at, scheduled_date: dayAt(ms, timezone), ...period };
}

/** A start by the calendar, of the schedule as it is now. */
async function startRun(
  ctx: IntakeCtx,
  row: ScheduleRow,
  start: ScheduledStart,
): Promise<ScheduledSubmission> {
  const { db, config, telemetry } = ctx;
  const { schedule_id, scheduled_at, workflow_id } = start;
  const { project_id, body } = row;
  const origin = { ...originAt(row, scheduled_at), parent_workflow_id: workflow_id };
  const prepared = await prepareOriginatedRun(ctx, project_id, { request: toRequest(body), origin });
  const submitted = await db.transaction(async (trx) => {
    const skipped = await explainSkip(trx, row);
    if (skipped === null) return insertAdmittedRun(trx, prepared, config.OPEN_RUNS_PER_PROJECT);
    const gap = { schedule_id, gap_id: newId('gap') };
    const isNew = await noteSkip(trx, gap, { moments: [scheduled_at], reason: skipped });
    return { skipped, isNew };
  });
  const isSkipped = 'skipped' in submitted;
  if (!isSkipped || submitted.isNew) countStarts(telemetry.metrics, isSkipped ? 'skipped' : 'started');
  return isSkipped ? { skipped: submitted.skipped } : { run_id: submitted.run_id };
}

export async function submitScheduledRun(
  ctx: IntakeCtx,
  start: ScheduledStart,
): Promise<ScheduledSubmission> {
  const { db } = ctx;
  const known = await findSubmitted(db, start);
  if (known !== undefined) return known;
  const row = await readSchedule(db, start.schedule_id);
  if (row === undefined) return refuse('not_found', `there is no schedule ${start.schedule_id} any more`);
  if (row.body.paused) return refuse('state_conflict', `schedule ${start.schedule_id} is paused`);
  try {
    return await startRun(ctx, row, start);
  } catch (error) {
    const first = await findSubmitted(db, start); // the same start, submitted twice in parallel
    if (first !== undefined) return first;
    if (!isRefusal(error)) throw error;
    const { code, message } = error;
    await recordFruitlessStart(ctx, row, { ...start, outcome: 'refused', error: { code, message } });
    return { refused: { code, message } };
  }
}

function refuse(code: ErrorCode, message: string): ScheduledSubmission {
  return { refused: { code, message } };
}

/** Labels that no expression gives: its job may be the reason why the start came to nothing. */
function plainLabels({ labels = {} }: Pick<PipelineDefinition, 'labels'>): Record<string, string> {
  const isPlain = ([, text]: [string, string]): boolean => !text.includes(delimiters.open);
  return Object.fromEntries(Object.entries(labels).filter(isPlain));
}

export interface FruitlessStart {
  /** RFC 3339 */
  readonly scheduled_at: string;
  /** The workflow of the start, if there was one. */
  readonly workflow_id?: string;
  readonly backfill_id?: string;
  readonly outcome: 'refused' | 'missed';
  readonly error: Failure;
}

/**
 * Writes the run of a start that did not come about, in state failed, so that lists, webhooks and alerts see it. Its
 * version is the one that the schedule names, else the latest.
 */
export async function recordFruitlessStart(
  { db, telemetry: { metrics } }: Pick<IntakeCtx, 'db' | 'telemetry'>,
  row: ScheduleRow,
  { scheduled_at, workflow_id, backfill_id, outcome, error }: FruitlessStart,
): Promise<void> {
  const { schedule_id, project_id, body } = row;
  const { pipeline } = body;
  const found =
    (await findDigest(db, { project_id, pipeline }, choiceOf(body))) ??
    (await findDigest(db, { project_id, pipeline }, null));
  const definition = found === undefined ? undefined : await readDefinition(db, found.digest);
  if (found === undefined || definition === undefined) {
    const gap = { schedule_id, gap_id: newId('gap') };
    await noteSkip(db, gap, { moments: [scheduled_at], reason: error.message });
    return countStarts(metrics, outcome);
  }
  const job = newJob(body.job);
  const run = {
    ...found,
    run_id: newId('run'),
    project_id,
    pipeline,
    job_id: job.job_id,
    ...originAt(row, scheduled_at),
    ...(backfill_id === undefined ? {} : { backfill_id }),
    ...(workflow_id === undefined ? {} : { parent_workflow_id: workflow_id }),
    priority: priorityOfRun(definition, body.priority),
    budget_ceiling_usd: ceilingOfRun(definition, body.budget_ceiling_usd),
    labels: { ...plainLabels(definition), ...body.labels },
  };
  const isFirst = await db.transaction(async (trx) => {
    const { run_ids } = await insertRuns(trx, { runs: [run], jobs: [{ ...job, project_id }] });
    const step_ids = definition.steps.map(({ id }) => id);
    const end = { run_id: run.run_id, state: 'failed', output: undefined, error, step_ids } as const;
    return run_ids.size > 0 && (await finishRun(trx, end));
  });
  if (!isFirst) return;
  countStarts(metrics, outcome);
  metrics.add('runs_total', { pipeline, state: 'failed' });
}

const reason = 'its schedule asked it to stop';

/** Requests the cancel; the server delivers it. A run that has ended does not change. */
export async function cancelScheduledRun({ db }: Pick<Ctx, 'db'>, run: CancelRunRequest): Promise<void> {
  await requestCancel(db, run, { reason, mode: 'graceful' });
}
