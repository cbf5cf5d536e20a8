/** Reads runs: one, a page of a project's, their number, all as lines, the events of one as pages or as a stream, and the wait for its end. */

import { type CancelSignal, CancelSource, onCancel } from '@capstan/core/cancellation';
import {
  type EventPage,
  type EventQuery,
  type RunEvent,
  terminalEvents,
} from '@capstan/core/contracts/event';
import {
  type Run,
  type RunPause,
  type RunQuery,
  type RunState,
  type RunSummary,
  terminalRunStates,
} from '@capstan/core/contracts/run';
import type { RunCount, RunCountQuery } from '@capstan/core/contracts/run-control';
import type { StepState } from '@capstan/core/contracts/run-step';
import { AppError } from '@capstan/core/errors/app-error';
import pLimit from 'p-limit';
import type { ServerCtx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import { confirmPosition, hasEndBehind, type LogPosition, listEvents } from '../../db/run/event.ts';
import { findJob } from '../../db/run/job.ts';
import { listOpenCalls, listOpenChildRuns, type RunKey } from '../../db/run/run-control.ts';
import { countRuns, findEndOfSearch, listRuns, type RunDetailRow, readRun } from '../../db/run/run-list.ts';
import { listRunSteps } from '../../db/step/step.ts';
import { toRunEvent } from '../../parts/feeds/event-feed.ts';
import { boundsOfIds } from '../../parts/ids.ts';
import { decodeCursor, encodeCursor, refuseCursor, toPage } from '../cursor.ts';
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
  const row = await requireRun(ctx, key);
  const run = toRun(row, await listRunSteps(ctx.db, key.run_id), ctx.web);
  if (row.state !== 'paused' || row.paused_at === null) return run;
  const pause = await readPauseOf(ctx.db, run, row.paused_at);
  return { ...run, pause: row.paused_by === null ? pause : { ...pause, by: row.paused_by } };
}

/** Open calls and child runs that are listed. */
const mostListed = 100;
/** A step in one of these states continues by itself, unless its run is paused. */
const held: ReadonlySet<StepState> = new Set(['pending', 'ready', 'running', 'retrying']);

async function readPauseOf(db: Db, { run_id, steps }: Run, since: Date): Promise<RunPause> {
  const calls = await listOpenCalls(db, run_id, mostListed);
  const calling = new Set(calls.map(({ step_id }) => step_id));
  return {
    since: since.toISOString(),
    open_calls: calls.map(({ step_id, item, capability, endpoint, started_at }) => ({
      step_id,
      ...(item === 0 ? {} : { item }),
      capability,
      endpoint,
      started_at: started_at.toISOString(),
    })),
    open_call_count: calls[0]?.open ?? 0,
    open_child_runs: [...(await listOpenChildRuns(db, run_id, mostListed))],
    held_steps: steps.filter(({ id, state }) => held.has(state) && !calling.has(id)).length,
  };
}

/** Newest first. A page of a search may be short or empty without being the last. */
export async function listRunsPage(
  { historyDb, stepSizes }: Pick<ServerCtx, 'historyDb' | 'stepSizes'>,
  projectId: string,
  { cursor, limit, ...filter }: RunQuery & { readonly run_ids?: readonly string[] | undefined },
): Promise<{ items: RunSummary[]; next_cursor: string | null }> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  const wanted = { ...filter, after, limit: limit + 1 };
  const rows = await countSteps(historyDb, stepSizes, await listRuns(historyDb, projectId, wanted));
  const page = toPage(rows, limit, { key: ({ run_id }) => run_id, item: toRunSummary });
  if (filter.q === undefined || page.next_cursor !== null) return page;
  const end = await findEndOfSearch(historyDb, projectId, wanted);
  return end === undefined || isBeyond(end, filter) ? page : { ...page, next_cursor: encodeCursor(end) };
}

/** Ids begin with the time: all further runs are outside of the requested time. */
function isBeyond(
  runId: string,
  { order, since, until }: Pick<RunQuery, 'order' | 'since' | 'until'>,
): boolean {
  const bound = order === 'oldest' ? until : since;
  if (bound === undefined) return false;
  const [from, to] = boundsOfIds('run', new Date(bound), new Date(bound));
  return order === 'oldest' ? runId > to : runId < from;
}

export async function countRunsOf(
  { historyDb }: Pick<ServerCtx, 'historyDb'>,
  projectId: string,
  query: RunCountQuery,
): Promise<RunCount> {
  const by_state = await countRuns(historyDb, projectId, query);
  return { count: Object.values(by_state).reduce((sum, runs) => sum + runs, 0), by_state };
}

/** Runs that are read at the same time. */
const readAtOnce = 8;

type ExportCtx = Pick<ServerCtx, 'db' | 'historyDb' | 'stepSizes' | 'web'>;

/** Whole runs with their jobs as lines of JSON, page by page. The first page is read at once. @throws AppError `request_invalid` */
export async function exportRuns(
  ctx: ExportCtx,
  projectId: string,
  query: RunQuery,
): Promise<AsyncGenerator<string, void, undefined>> {
  return exportFrom(ctx, { projectId, query, first: await listRunsPage(ctx, projectId, query) });
}

interface Export {
  readonly projectId: string;
  readonly query: RunQuery;
  readonly first: { readonly items: readonly RunSummary[]; readonly next_cursor: string | null };
}

async function* exportFrom(
  ctx: ExportCtx,
  { projectId: project_id, query, first }: Export,
): AsyncGenerator<string, void, undefined> {
  const limit = pLimit(readAtOnce);
  for (let page = first; ; ) {
    const lines = page.items.map((run) => limit(() => exportRun(ctx, project_id, run).catch(ignoreDeleted)));
    const text = (await Promise.all(lines)).join('');
    if (text !== '') yield text;
    if (page.next_cursor === null) return;
    page = await listRunsPage(ctx, project_id, { ...query, cursor: page.next_cursor });
  }
}

async function exportRun(
  ctx: ExportCtx,
  project_id: string,
  { run_id, job_id }: Pick<Run, 'run_id' | 'job_id'>,
): Promise<string> {
  const [run, job] = await Promise.all([
    getRun(ctx, { project_id, run_id }),
    findJob(ctx.db, { project_id, job_id }),
  ]);
  return `${JSON.stringify({ ...run, job: job?.body ?? null })}\n`;
}

/** A run may be deleted between the page and its reading. */
function ignoreDeleted(error: unknown): string {
  if (error instanceof AppError && error.code === 'not_found') return '';
  throw error;
}

function encodePosition({ seq, xid, id }: LogPosition): string {
  return `${seq}.${xid}.${id}`;
}

/** @throws AppError `request_invalid` */
function decodePosition(cursor: string): LogPosition {
  const [, seq, xid, id] = /^(\d{1,15})\.(\d{1,19})\.(\d{1,18})$/.exec(decodeCursor(cursor)) ?? [];
  if (seq === undefined || xid === undefined || id === undefined) throw refuseCursor();
  return { seq: Number(seq), xid, id };
}

/** Reads a page of the log. A cursor saves counting the log from its beginning. */
async function readPage(db: Db, runId: string, { after, cursor, limit }: EventQuery): Promise<EventPage> {
  const from = cursor === undefined ? after : await confirmPosition(db, runId, decodePosition(cursor));
  const rows = await listEvents(db, runId, { before: null, after: from, limit: limit + 1 });
  return toPage(rows, limit, { key: encodePosition, item: toRunEvent });
}

/** @throws AppError `not_found` */
export async function listRunEvents(
  ctx: Pick<ServerCtx, 'db'>,
  key: RunKey,
  query: EventQuery,
): Promise<EventPage> {
  await readRunState(ctx, key);
  return readPage(ctx.db, key.run_id, query);
}

type FollowCtx = Pick<ServerCtx, 'db' | 'events'>;

/** The events after number `after`, as a stream. Ends after the run's last event. */
export async function* watchRun(
  ctx: FollowCtx,
  key: RunKey,
  { after, signal }: { readonly after: number; readonly signal: CancelSignal },
): AsyncGenerator<RunEvent> {
  const hasEnded = terminalRunStates.has(await readRunState(ctx, key));
  // Events of a transaction that is still open follow soon.
  if (hasEnded && !(await hasEndBehind(ctx.db, key.run_id, after))) return;
  for await (const event of ctx.events.watch(key.run_id, after, signal)) {
    yield event;
    if (terminalEvents.has(event.type)) return;
  }
}

/** Waits for the end of the run. @returns the run, open when the time is over or the caller has disconnected */
export async function waitForEnd(
  ctx: FollowCtx & Pick<ServerCtx, 'web'>,
  key: RunKey,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: CancelSignal },
): Promise<Run> {
  const limit = new CancelSource();
  const stopListening = onCancel(signal, () => limit.abort('gone'));
  const timer = setTimeout(() => limit.abort('late'), timeoutMs);
  try {
    for await (const event of watchRun(ctx, key, { after: 0, signal: limit }))
      if (terminalEvents.has(event.type)) break;
  } finally {
    clearTimeout(timer);
    stopListening();
  }
  return getRun(ctx, key);
}
