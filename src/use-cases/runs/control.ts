/**
 * Controls an open run: pause, resume, cancel, another ceiling; cancels, repeats or raises many. The row decides, even while Temporal is away; the
 * change is delivered afterwards.
 */

import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Problem } from '@capstan/core/contracts/problem';
import { type Run, type RunState, type RunSummary, terminalRunStates } from '@capstan/core/contracts/run';
import type {
  BulkRerunRequest,
  CancelRequest,
  RerunRequest,
  RunActs,
  RunBudgetRequest,
  RunSelection,
} from '@capstan/core/contracts/run-control';
import { AppError, refuseField } from '@capstan/core/errors/app-error';
import { isPlainObject } from '@capstan/core/json/values';
import pLimit from 'p-limit';
import type { ServerCtx } from '../../context.ts';
import { insertAudit } from '../../db/access/audit.ts';
import {
  type RunKey,
  requestCancel,
  pauseRun as writePause,
  resumeRun as writeResume,
} from '../../db/run/run-control.ts';
import { type DeliveryCtx, deliverSoon } from '../../parts/delivery/deliveries.ts';
import type { Idempotency } from '../idempotency.ts';
import { raiseRun, refuseRaise } from '../money/budgets.ts';
import { closeUnstarted, runCancels, runControls } from './delivery.ts';
import { rerunRun } from './rerun/rerun.ts';
import { getRun, listRunsPage, readRunState } from './run-reading.ts';

type ControlCtx = DeliveryCtx & Pick<ServerCtx, 'web'>;

function refuse({ run_id }: RunKey, state: RunState, wish: string): AppError {
  return new AppError('state_conflict', `run ${run_id} is ${state}; ${wish}`);
}

/**
 * Starts no more steps; running ones finish. Repeated, it changes nothing. @param by id of the key or person
 * @throws AppError `state_conflict`
 */
export async function pauseRun(ctx: ControlCtx, key: RunKey, by: string): Promise<Run> {
  if (await writePause(ctx.db, key, by)) void deliverSoon(ctx, runControls, { run_id: key.run_id });
  else {
    const state = await readRunState(ctx, key);
    if (state !== 'paused') throw refuse(key, state, 'only one that is queued or running can be paused');
  }
  return getRun(ctx, key);
}

/** Repeated, it changes nothing. @throws AppError `state_conflict` */
export async function resumeRun(ctx: ControlCtx, key: RunKey): Promise<Run> {
  if (await writeResume(ctx.db, key)) void deliverSoon(ctx, runControls, { run_id: key.run_id });
  else {
    const state = await readRunState(ctx, key);
    if (state !== 'queued' && state !== 'running') {
      throw refuse(key, state, 'only one that is paused can be resumed');
    }
  }
  return getRun(ctx, key);
}

/**
 * Repeated, it changes nothing. `by`: id of the key or the person. @throws AppError `state_conflict` after another end
 */
export async function cancelRun(
  ctx: ControlCtx,
  key: RunKey,
  { reason, mode, by }: CancelRequest & { readonly by: string },
): Promise<Run> {
  if (await requestCancel(ctx.db, key, { reason: reason ?? null, mode, by })) {
    await closeUnstarted(ctx, key);
    void deliverSoon(ctx, runCancels, { run_id: key.run_id });
  } else {
    const state = await readRunState(ctx, key);
    if (state !== 'cancelling' && state !== 'cancelled') {
      throw refuse(key, state, 'only one that goes on can be cancelled');
    }
  }
  return getRun(ctx, key);
}

/** @param ceilingUsd null = none; `by`: id of the key @throws AppError `state_conflict` when the run has ended */
export async function setRunBudget(
  ctx: ControlCtx,
  key: RunKey,
  change: { readonly ceilingUsd: number | null; readonly by: string; readonly isRaise?: boolean },
): Promise<Run> {
  await readRunState(ctx, key);
  await raiseRun(ctx.db, key, change);
  void deliverSoon(ctx, runControls, { run_id: key.run_id });
  return getRun(ctx, key);
}

// Many runs, one page of the list at a time.

/** Runs that are changed at the same time. */
const changedAtOnce = 8;

export interface ManyOrder<Request> {
  readonly projectId: string;
  readonly selection: RunSelection;
  readonly request: Request;
  readonly toProblem: (error: AppError) => Problem;
  /** Id of the key or person. */
  readonly by: string;
}

type RunAct = RunActs['items'][number];

const filters = [
  'run_id',
  'pipeline',
  'state',
  'awaiting',
  'q',
  'label',
  'schedule_id',
  'since',
  'until',
] as const;

/** Without a filter, a request would mean every run. @throws AppError `request_invalid` */
function requireFilter(selection: RunSelection): void {
  if (filters.some((name) => selection[name] !== undefined)) return;
  throw refuseField(
    '/query',
    `give a filter; without one, all runs are meant: ${filters.join(', ')}`,
    'missing',
  );
}

interface BulkChange {
  readonly act: 'cancelled' | 'repeated' | 'raised';
  /** Returns null for a run that is left out. */
  readonly change: (run: RunSummary) => Promise<Partial<RunAct> | null>;
}

/** All bulk actions on runs have this subject in the audit log. */
const bulkSubject = 'runs';

interface AuditedPage {
  readonly projectId: string;
  readonly by: string;
  readonly act: BulkChange['act'];
  readonly filter: RunSelection;
  readonly request: object;
  readonly done: readonly RunAct[];
}

/** One entry for a page of runs: the filters, and what became of each run. */
function auditPage(
  { db }: Pick<ServerCtx, 'db'>,
  { projectId, by, act, filter, request, done }: AuditedPage,
): Promise<void> {
  const { limit: _limit, cursor: _cursor, order: _order, label, run_id: _ids, ...named } = filter;
  const refused = done.filter(({ error }) => error !== undefined).map(({ run_id }) => run_id);
  return insertAudit(db, {
    project_id: projectId,
    actor: by,
    action: `runs.${act}`,
    subject: bulkSubject,
    data: {
      filter: { ...named, ...(label === undefined ? {} : { label: label.join('=') }) },
      request: request as JsonObject,
      runs: done.filter(({ error }) => error === undefined).map(({ run_id }) => run_id),
      new_runs: done.flatMap(({ new_run_id }) => new_run_id ?? []),
      refused,
    },
  });
}

async function changePage(
  ctx: ServerCtx,
  { projectId, selection, toProblem, by, request }: ManyOrder<object>,
  { act, change }: BulkChange,
): Promise<RunActs> {
  requireFilter(selection);
  const { run_id, ...filter } = selection;
  const run_ids = run_id?.split(',');
  const { items, next_cursor } = await listRunsPage(ctx, projectId, { ...filter, run_ids, parent: 'none' });
  const limit = pLimit(changedAtOnce);
  const acts = items.map((run) =>
    limit(async (): Promise<RunAct | null> => {
      const { run_id } = run;
      try {
        const changed = await change(run);
        return changed === null ? null : { status: 202, run_id, ...changed };
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        return { status: error.status, run_id, error: toProblem(error) };
      }
    }),
  );
  const done = (await Promise.all(acts)).filter((one) => one !== null);
  if (done.length > 0) await auditPage(ctx, { projectId, by, act, filter: selection, request, done });
  return { items: done, next_cursor };
}

/** A run that has ended is refused with `state_conflict`. */
export function cancelRuns(ctx: ServerCtx, order: ManyOrder<CancelRequest>): Promise<RunActs> {
  const { projectId: project_id, request, by } = order;
  const change: BulkChange['change'] = async ({ run_id }) => {
    await cancelRun(ctx, { project_id, run_id }, { ...request, by });
    return {};
  };
  return changePage(ctx, order, { act: 'cancelled', change });
}

type RepeatOrder<Request> = ManyOrder<Request> & { readonly idempotency: Idempotency | null };

/**
 * Leaves out runs that another run repeats already, unless the selection names them. With an idempotency key they are
 * listed, so that a repeated request gets the same answers.
 */
function selectUnrepeated<Order extends RepeatOrder<unknown>>(order: Order): Order {
  const { selection, idempotency } = order;
  if (selection.run_id !== undefined) return order;
  const superseded = selection.superseded ?? (idempotency === null ? 'none' : undefined);
  return superseded === undefined ? order : { ...order, selection: { ...selection, superseded } };
}

/** @returns null for a run that is left out */
async function repeat(
  ctx: ServerCtx,
  { projectId: project_id, selection, idempotency, by }: RepeatOrder<unknown>,
  { run: { run_id, superseded_by }, request }: { readonly run: RunSummary; readonly request: RerunRequest },
): Promise<Partial<RunAct> | null> {
  const isNamed = selection.run_id !== undefined;
  const onlyOnce = !isNamed && (selection.superseded === undefined || selection.superseded === 'none');
  try {
    const { run } = await rerunRun(ctx, { project_id, run_id, request, idempotency, by, onlyOnce });
    return { new_run_id: run.run_id };
  } catch (error) {
    const isLeft = onlyOnce && superseded_by !== undefined;
    if (isLeft && error instanceof AppError && error.code === 'state_conflict') return null;
    throw error;
  }
}

/**
 * A run that has not ended is refused with `state_conflict`. New runs are newer than any page that follows, so a walk
 * over the pages repeats no run twice. Under an idempotency key, each run is repeated once for the key.
 */
export function rerunRuns(ctx: ServerCtx, order: RepeatOrder<BulkRerunRequest>): Promise<RunActs> {
  const { request } = order;
  const change: BulkChange['change'] = (run) => repeat(ctx, order, { run, request });
  return changePage(ctx, selectUnrepeated(order), { act: 'repeated', change });
}

function hasFailedForBudget({ state, error }: RunSummary): boolean {
  const details = error?.details;
  return state === 'failed' && isPlainObject(details) && details.code === 'budget_exhausted';
}

/** @throws AppError `state_conflict` when the ceiling is no higher than that of the run */
function requireRaise({ run_id, budget_ceiling_usd: was }: RunSummary, ceilingUsd: number | null): void {
  if (was === null || (ceilingUsd !== null && ceilingUsd <= was)) throw refuseRaise(run_id, was, ceilingUsd);
}

/**
 * Open runs continue under the new ceiling. A run that has failed for its budget continues as a new run, which keeps
 * the results of steps that succeeded; under an idempotency key, once for the key. Others that have ended, and a lower
 * ceiling, are refused with `state_conflict`.
 */
export function raiseRuns(ctx: ServerCtx, order: RepeatOrder<RunBudgetRequest>): Promise<RunActs> {
  const { projectId: project_id, by } = order;
  const { budget_ceiling_usd } = order.request;
  const change: BulkChange['change'] = async (run) => {
    const key = { project_id, run_id: run.run_id };
    requireRaise(run, budget_ceiling_usd);
    if (hasFailedForBudget(run)) {
      return repeat(ctx, order, { run, request: { only_failed: true, budget_ceiling_usd } });
    }
    if (terminalRunStates.has(run.state)) {
      throw refuse(key, run.state, 'only one that is open, or that failed for its budget, can be raised');
    }
    await setRunBudget(ctx, key, { ceilingUsd: budget_ceiling_usd, by, isRaise: true });
    return {};
  };
  return changePage(ctx, selectUnrepeated(order), { act: 'raised', change });
}
