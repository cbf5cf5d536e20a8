/**
 * Delivers the rows of runs to Temporal: starts, with the workflow's input, cancels, and people's requests to open
 * runs. The process that accepted a request delivers at once; maintenance repeats deliveries that a crash, or
 * Temporal's absence, prevented.
 */

import { parseDuration } from '@capstan/core/duration';
import { listDispatchReasons } from '@capstan/core/run/dispatch';
import { planRun } from '@capstan/core/run/plan';
import type { RunRef } from '@capstan/core/workflow-names';
import type { ControlSignal, RunPipelineInput } from '@capstan/core/workflow-payloads';
import type { Ctx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import { lockRun, type RunKey } from '../../db/run/run-control.ts';
import {
  type DeliveryRow,
  forgetStart,
  listDelivered,
  listEndedUnstarted,
  listUndeliveredCancels,
  listUndeliveredControls,
  listUndeliveredStarts,
  markCancelDelivered,
  markControlDelivered,
  readDelivery,
} from '../../db/run/run-delivery.ts';
import {
  type DeliveryCtx,
  type DeliveryKind,
  deliverKnownSoon,
  deliveryBatch,
  overdueMs,
} from '../../parts/delivery/deliveries.ts';
import { linkBelow } from '../../parts/web-links.ts';
import { closeLostRun, type LostRun } from './closing.ts';

/** The part of a run's row that its start needs. */
export type RunToStart = Omit<
  DeliveryRow,
  | 'start_delivered_at'
  | 'cancel_requested_at'
  | 'cancel_mode'
  | 'finished_at'
  | 'control_delivered'
  | 'waits_its_turn'
  | 'paused_ms'
  | 'parent'
> &
  Partial<Pick<DeliveryRow, 'paused_ms' | 'parent'>>;

function controlOf({
  control_version: version,
  state,
  budget_version,
  paused_ms = 0,
}: Pick<RunToStart, 'control_version' | 'state' | 'budget_version' | 'paused_ms'>): ControlSignal {
  const control = { version, paused: state === 'paused', budget_version };
  return paused_ms === 0 ? control : { ...control, paused_ms };
}

async function toInput(
  { config, temporal, consoleUrl }: DeliveryCtx,
  { definition, reused, skipped, dispatch, parent = null, ...row }: RunToStart,
): Promise<RunPipelineInput> {
  return {
    engine_version: config.ENGINE_VERSION,
    run_id: row.run_id,
    project_id: row.project_id,
    pipeline: row.pipeline,
    version: row.version,
    plan: planRun(definition, { reused, skipped, dispatch }),
    timeout_ms: definition.timeout === undefined ? null : parseDuration(definition.timeout),
    heartbeat_timeout_ms: config.HEARTBEAT_TIMEOUT_MS,
    has_search_attributes: await temporal.workflows.hasSearchAttributes(),
    run_url: linkBelow(consoleUrl(), `runs/${row.run_id}`),
    dispatch_reasons: listDispatchReasons(definition, dispatch),
    history_events: config.HISTORY_EVENTS,
    ...(row.control_version === 0 ? {} : { control: controlOf(row) }),
    ...(parent === null ? {} : { parent }),
  };
}

const cancelledAsItStarted = 'the run was cancelled as it started';

async function readOpen(db: Db, runId: string): Promise<DeliveryRow | undefined> {
  const row = await readDelivery(db, runId);
  return row?.finished_at === null ? row : undefined;
}

/** Ends a cancelled run that has no workflow to wait for. */
export function closeUnstarted({ db }: Pick<Ctx, 'db'>, { project_id, run_id }: RunKey): Promise<void> {
  return db.transaction(async (trx) => {
    const row = await lockRun(trx, { project_id, run_id });
    if (row?.state !== 'cancelling' || row.start_delivered_at !== null) return;
    const waits = row.concurrency_key !== null && row.admitted_at === null;
    if (!waits && row.cancel_mode !== 'terminate') return; // its start may be in flight
    await close(trx, { ...row, cancel_mode: 'graceful' }, 'cancelled before it had started');
  });
}

async function endWorkflow({ db, temporal }: DeliveryCtx, row: DeliveryRow): Promise<void> {
  const { workflows } = temporal;
  if (row.cancel_mode === 'terminate') {
    await workflows.terminate(row, 'the run was cancelled');
    await close(db, row, 'cancelled; its workflow was terminated');
  } else if ((await workflows.cancel(row)) === 'gone') {
    // Temporal has forgotten the workflow, or ended it itself: nothing else will close the run.
    await close(db, row, 'cancelled; its workflow had ended without closing it');
  }
}

function close(
  db: Db,
  { cancel_mode, ...run }: LostRun & Pick<DeliveryRow, 'cancel_mode'>,
  message: string,
): Promise<void> {
  const error = { code: 'run_cancelled', message };
  return closeLostRun(db, run, { state: 'cancelled', error, mode: cancel_mode ?? 'graceful' });
}

// The messages to the workflow of a run, each from its row as it is then: start, cancel, current state. All may be
// repeated.

/** Ends the workflow of a run that was terminated while it was started. */
async function endStarted({ db, temporal }: DeliveryCtx, run: RunRef): Promise<void> {
  await temporal.workflows.terminate(run, cancelledAsItStarted);
  await markCancelDelivered(db, run.run_id, 'terminate');
}

/** Starts a run whose row is known. The mark returns requests that arrived since the row was read or written. */
async function startKnown(ctx: DeliveryCtx, run: RunToStart): Promise<void> {
  const { workflows } = ctx.temporal;
  const { run_id, control_version: version } = run;
  await workflows.start(await toInput(ctx, run), run.priority, version === 0 ? null : controlOf(run));
  const { is_cancelled, is_terminated, is_changed } = await ctx.markStart({ run_id, version });
  if (is_terminated) await endStarted(ctx, run);
  else if (is_cancelled) await cancel(ctx, run_id);
  else if (is_changed) await control(ctx, run_id);
}

async function start(ctx: DeliveryCtx, runId: string): Promise<void> {
  const row = await readOpen(ctx.db, runId);
  if (row?.start_delivered_at === null && !row.waits_its_turn) await startKnown(ctx, row);
}

async function cancel(ctx: DeliveryCtx, runId: string): Promise<void> {
  const row = await readOpen(ctx.db, runId);
  if (row?.start_delivered_at === null) return closeUnstarted(ctx, row);
  if (row === undefined) return;
  await endWorkflow(ctx, row);
  await markCancelDelivered(ctx.db, runId, row.cancel_mode ?? 'graceful');
}

async function control(ctx: DeliveryCtx, runId: string): Promise<void> {
  const row = await readOpen(ctx.db, runId);
  if (row?.start_delivered_at === null) return start(ctx, runId);
  if (row === undefined || row.control_delivered >= row.control_version) return;
  await ctx.temporal.workflows.signalControl(row, controlOf(row));
  await markControlDelivered(ctx.db, runId, row.control_version);
}

interface RunItem {
  readonly run_id: string;
}

export function toRunItems(runIds: readonly string[]): readonly RunItem[] {
  return runIds.map((run_id) => ({ run_id }));
}

/**
 * Runs that Temporal has forgotten continue: a step that has succeeded returns its result, a waiting one reads its row.
 */
export const runStarts: DeliveryKind<RunItem, RunRef> = {
  what: 'a start',
  due: async ({ db }) => toRunItems(await listUndeliveredStarts(db, overdueMs, deliveryBatch)),
  deliver: (ctx, { run_id }) => start(ctx, run_id),
  forgotten: {
    what: 'a run',
    idOf: ({ run_id }) => run_id,
    itemOf: (run_id) => ({ run_id }),
    list: listDelivered,
    listRunning: ({ temporal }) => temporal.workflows.listRunning(),
    isForgotten: ({ temporal }, run) => temporal.workflows.isForgotten(run),
    forgetStart,
  },
};

/** Starts a new run in the background, without reading its row. */
export async function startNew(ctx: DeliveryCtx, run: RunToStart): Promise<void> {
  const item = { run_id: run.run_id };
  await deliverKnownSoon(ctx, runStarts, { item, way: () => startKnown(ctx, run) });
}

export const runCancels: DeliveryKind<RunItem> = {
  what: 'a cancel',
  due: async ({ db }) => toRunItems(await listUndeliveredCancels(db, deliveryBatch)),
  deliver: (ctx, { run_id }) => cancel(ctx, run_id),
};

export const runControls: DeliveryKind<RunItem> = {
  what: 'a pause, a resume or another ceiling',
  due: async ({ db }) => toRunItems(await listUndeliveredControls(db, deliveryBatch)),
  deliver: (ctx, { run_id }) => control(ctx, run_id),
};

/** A start that is in flight has ended by then. */
const startOverMs = 60_000;

/** Ends workflows of runs that were terminated while they were started, if no server has done it. */
export const unmarkedStarts: DeliveryKind<RunRef> = {
  what: 'the end of a start',
  due: ({ db }) => listEndedUnstarted(db, startOverMs, deliveryBatch),
  deliver: endStarted,
};
