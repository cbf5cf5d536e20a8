/**
 * Repairs runs whose row and workflow disagree; it finds 0 in steady state.
 *
 * Open runs whose workflow Temporal has ended, by termination or timeout, are closed. One query finds the workflows
 * that closed lately. From time to time a query for all that closed since the oldest open run began finds any that were
 * missed. A workflow that ends by itself has closed its run before.
 *
 * Runs whose workflow is open and cannot make progress are marked: Temporal repeats a task that fails, and no list of
 * Temporal names them. Therefore runs in which nothing happens are asked one by one, a page at a time, and first those
 * that are known, or that do not end although they were cancelled. A cancelled one is ended: it would not receive it.
 * Runs whose payload key is missing have no task while they wait, and are known by their rows.
 */
import pLimit from 'p-limit';
import { describeMissingKey } from '../../clients/temporal/payload-codec.ts';
import { listOpenAmong, type OpenRunRow, readOldestOpen } from '../../db/run/run-delivery.ts';
import {
  clearMissingKeys,
  type IdleRunRow,
  listIdleRuns,
  listNeededKeys,
  listSuspiciousRuns,
  markMissingKey,
  writeStalled,
} from '../../db/run/run-stall.ts';
import type { DeliveryCtx } from '../../parts/delivery/deliveries.ts';
import { closeLostRun, type LostEnd } from './closing.ts';

type RepairCtx = Pick<DeliveryCtx, 'db' | 'temporal' | 'logger'>;

/** The largest delay of Temporal's listing, and the largest difference between the clocks. */
const overlapMs = 60_000;
const wholeLookMs = 300_000;
const batch = 1_000;

function endOf({ cancel_requested_at, cancel_mode }: OpenRunRow): LostEnd {
  const mode = cancel_mode ?? 'graceful';
  if (cancel_requested_at === null) {
    const message = 'its workflow was ended from outside, in Temporal';
    return { state: 'failed', error: { code: 'run_terminated', message }, mode };
  }
  return { state: 'cancelled', error: { code: 'run_cancelled', message: 'cancelled' }, mode };
}

export function createReconcileRuns(ctx: RepairCtx): () => Promise<number> {
  const { db, temporal } = ctx;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let lookedAtAllAt = Number.NEGATIVE_INFINITY;

  /** @returns how many it closed */
  return async () => {
    const beganAt = Date.now();
    const oldest = await readOldestOpen(db);
    if (oldest === null) {
      lookedAt = lookedAtAllAt = beganAt;
      return 0;
    }
    const isWhole = beganAt - lookedAtAllAt >= wholeLookMs;
    const since = new Date((isWhole ? oldest.getTime() : lookedAt) - overlapMs);
    let closed = 0;
    for await (const runIds of inBatches(temporal.workflows.listClosed(since))) {
      closed += await closeAll(ctx, runIds);
    }
    lookedAt = beganAt;
    if (isWhole) lookedAtAllAt = beganAt;
    return closed;
  };
}

async function* inBatches(ids: AsyncIterable<string>): AsyncGenerator<readonly string[]> {
  let some: string[] = [];
  for await (const id of ids) {
    some.push(id);
    if (some.length < batch) continue;
    yield some;
    some = [];
  }
  yield some;
}

async function closeAll(ctx: RepairCtx, runIds: readonly string[]): Promise<number> {
  let closed = 0;
  for (const row of await listOpenAmong(ctx.db, runIds)) {
    if (await close(ctx, row)) closed += 1;
  }
  return closed;
}

/** Closes the run, unless its workflow was reset and continues under the same id. */
async function close({ db, temporal, logger }: RepairCtx, row: OpenRunRow): Promise<boolean> {
  if (await temporal.workflows.isOpen(row)) return false;
  await closeLostRun(db, row, endOf(row));
  logger.warn({ run_id: row.run_id }, 'the workflow of a run had ended without closing it');
  return true;
}

/** Runs that one tick asks about, and how many at the same time. */
const looksAtOnce = 100;
const parallelLooks = 8;

/** Marks runs whose workflow cannot make progress, and clears the mark of runs whose workflow can again. */
export function createStallWatch(ctx: RepairCtx): () => Promise<number> {
  let after = '';

  /** @returns how many it marked or ended */
  return async () => {
    const keyless = await markMissingKeys(ctx);
    const idle = await listIdleRuns(ctx.db, after, looksAtOnce);
    after = idle.length < looksAtOnce ? '' : (idle.at(-1)?.run_id ?? '');
    const rows = [...(await listSuspiciousRuns(ctx.db, looksAtOnce)), ...idle];
    const inTurn = pLimit(parallelLooks);
    const looks = [...new Map(rows.map((row) => [row.run_id, row])).values()].map((row) =>
      inTurn(() => lookForStall(ctx, row)),
    );
    return keyless + (await Promise.all(looks)).filter((isFound) => isFound).length;
  };
}

/**
 * Marks the open runs whose payload key this server lacks, also those that wait: no process with the same settings can
 * read their histories. Clears the marks of runs whose key is back.
 * @returns how many it marked
 */
async function markMissingKeys({ db, logger, temporal: { payloadKeys } }: RepairCtx): Promise<number> {
  await clearMissingKeys(db, payloadKeys);
  let marked = 0;
  for (const missing_key of await listNeededKeys(db)) {
    if (payloadKeys.includes(missing_key)) continue;
    const message = describeMissingKey(missing_key, payloadKeys);
    const runs = await markMissingKey(db, { missing_key, message, since: new Date().toISOString() });
    if (runs > 0) logger.warn({ runs, missing_key }, `open runs cannot make progress: ${message}`);
    marked += runs;
  }
  return marked;
}

async function lookForStall(ctx: RepairCtx, row: IdleRunRow): Promise<boolean> {
  const { db, temporal, logger } = ctx;
  const { run_id, stalled: known } = row;
  const fault = await temporal.workflows.findTaskFault(row);
  if (fault === null) {
    if (known !== null) await writeStalled(db, run_id, null);
    return false;
  }
  if (row.is_cancelled) return endStalled(ctx, row);
  const stalled = { message: fault.message, since: fault.since.toISOString() };
  if (known?.missing_key !== undefined || known?.message === stalled.message) return false;
  await writeStalled(db, run_id, stalled);
  logger.warn({ run_id, ...stalled }, 'the workflow of a run cannot make progress');
  return true;
}

/** Ends the workflow of a cancelled run, and the run. */
async function endStalled({ db, temporal }: RepairCtx, run: IdleRunRow): Promise<boolean> {
  await temporal.workflows.terminate(run, 'the run was cancelled, and its workflow could not make progress');
  const message = 'cancelled; its workflow could not make progress and was terminated';
  for (const row of await listOpenAmong(db, [run.run_id])) {
    const error = { code: 'run_cancelled', message };
    await closeLostRun(db, row, { state: 'cancelled', error, mode: row.cancel_mode ?? 'graceful' });
  }
  return true;
}
