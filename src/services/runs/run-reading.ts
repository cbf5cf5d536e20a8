/** Runs as users see them: one, a page of a project's, and one when it has ended. */
import type { Run, RunState, RunSummary } from '../../contracts/run.ts';
import type { RunQuery } from '../../contracts/run-query.ts';
import type { RunKey } from '../../db/run/run-control.ts';
import { listRuns, type RunDetailRow, readRun } from '../../db/run/run-list.ts';
import { listRunSteps } from '../../db/step/step.ts';
import type { ServerCtx } from '../context.ts';
import { decodeCursor, toPage } from '../cursor.ts';
import { countSteps, noSuchRun, toRun, toRunSummary } from './run-view.ts';

/** @throws AppError `not_found` */
export async function requireRun(
  { db }: Pick<ServerCtx, 'db'>,
  { project_id, run_id }: RunKey,
): Promise<RunDetailRow> {
  const row = await readRun(db, project_id, run_id);
  if (row === undefined) throw noSuchRun(run_id);
  return row;
}

/** @throws AppError `not_found` */
export async function readRunState(ctx: Pick<ServerCtx, 'db'>, key: RunKey): Promise<RunState> {
  return (await requireRun(ctx, key)).state;
}

/** @throws AppError `not_found` */
export async function getRun(ctx: Pick<ServerCtx, 'db' | 'web'>, key: RunKey): Promise<Run> {
  return toRun(await requireRun(ctx, key), await listRunSteps(ctx.db, key.run_id), ctx.web);
}

/** Newest first. */
export async function listRunsPage(
  { historyDb, stepSizes }: Pick<ServerCtx, 'historyDb' | 'stepSizes'>,
  projectId: string,
  { cursor, limit, ...filter }: RunQuery,
): Promise<{ items: RunSummary[]; next_cursor: string | null }> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  const wanted = { ...filter, after, limit: limit + 1 };
  const rows = await countSteps(historyDb, stepSizes, await listRuns(historyDb, projectId, wanted));
  return toPage(rows, limit, { key: ({ run_id }) => run_id, item: toRunSummary });
}
