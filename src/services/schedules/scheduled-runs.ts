/**
 * Turns a start of a schedule into a run, by the same path as the API, and cancels such a run when its schedule
 * requires it. The row decides: a schedule that was deleted or paused meanwhile starts nothing. A repeated start gets
 * the first one's run.
 */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { RunRequest } from '../../contracts/run.ts';
import type { ScheduleRequest } from '../../contracts/schedule.ts';
import type { CancelRunRequest, ScheduledStart, ScheduledSubmission } from '../../core/workflow-payloads.ts';
import type { Db } from '../../db/connect.ts';
import { requestCancel } from '../../db/run/run-control.ts';
import { findScheduledRun, readSchedule } from '../../db/schedule.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Ctx } from '../context.ts';
import type { IntakeCtx } from '../runs/preparation.ts';
import { submitOriginatedRun } from '../runs/submission.ts';

function toRequest(body: ScheduleRequest): RunRequest {
  const { pipeline, version, alias, job, priority, budget_ceiling_usd, labels } = body;
  return { pipeline, version, alias, job, priority, budget_ceiling_usd, labels };
}

async function requireActive(db: Db, scheduleId: string) {
  const row = await readSchedule(db, scheduleId);
  if (row === undefined) throw new AppError('not_found', `there is no schedule ${scheduleId} any more`);
  if (row.body.paused) throw new AppError('state_conflict', `schedule ${scheduleId} is paused`);
  return row;
}

const limitCodes: ReadonlySet<ErrorCode> = new Set(['concurrency_limit', 'open_runs_limit']);

/** A limit that is reached is an answer; other transient failures are not. */
function isRefusal(error: unknown): error is AppError {
  return error instanceof AppError && (!error.retryable || limitCodes.has(error.code));
}

async function findSubmitted(db: Db, start: ScheduledStart): Promise<ScheduledSubmission | undefined> {
  const found = await findScheduledRun(db, start);
  if (found === undefined) return undefined;
  const { run_id, is_untold } = found;
  return is_untold ? { run_id } : { run_id, has_ended: true };
}

export async function submitScheduledRun(
  ctx: IntakeCtx,
  start: ScheduledStart,
): Promise<ScheduledSubmission> {
  const { db } = ctx;
  const known = await findSubmitted(db, start);
  if (known !== undefined) return known;
  const { schedule_id, scheduled_at, workflow_id } = start;
  try {
    const { project_id, body, created_by: key_id } = await requireActive(db, schedule_id);
    const origin = { schedule_id, key_id, scheduled_at, parent_workflow_id: workflow_id };
    return { run_id: await submitOriginatedRun(ctx, project_id, { request: toRequest(body), origin }) };
  } catch (error) {
    const first = await findSubmitted(db, start); // the same start, submitted twice in parallel
    if (first !== undefined) return first;
    if (!isRefusal(error)) throw error;
    return { refused: { code: error.code, message: error.message } };
  }
}

const reason = 'its schedule asked it to stop';

/** Requests the cancel; the server delivers it. A run that has ended does not change. */
export async function cancelScheduledRun({ db }: Pick<Ctx, 'db'>, run: CancelRunRequest): Promise<void> {
  await requestCancel(db, run, { reason, mode: 'graceful' });
}
