/**
 * Repairs runs whose row and workflow disagree; it finds 0 in steady state.
 *
 * Open runs whose workflow Temporal has ended, by termination or timeout, are closed. One query finds the workflows
 * that closed lately. From time to time a query for all that closed since the oldest open run began finds any that were
 * missed. A workflow that ends by itself has closed its run before.
 */
import { listOpenAmong, type OpenRunRow, readOldestOpen } from '../../db/run/run-delivery.ts';
import type { DeliveryCtx } from '../delivery/deliveries.ts';
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
