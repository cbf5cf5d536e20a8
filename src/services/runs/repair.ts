/**
 * Repairs runs whose row and workflow have come apart; it finds 0 in steady state.
 *
 * Runs that are open here and whose workflow Temporal has ended without them, terminated by hand or timed out, are
 * closed. They are found by one query for the workflows that closed lately, not by a question for each run, and
 * now and then by one for all that closed since the oldest open run began, so that none is missed for good. A
 * workflow that ends by itself has closed its run before.
 */
import { listOpenAmong, type OpenRunRow, readOldestOpen } from '../../db/run/run-delivery.ts';
import type { DeliveryCtx } from '../delivery/deliveries.ts';
import { closeLostRun, type LostEnd } from './closing.ts';

type RepairCtx = Pick<DeliveryCtx, 'db' | 'temporal' | 'logger'>;

/** What Temporal tells may be so late, and so may our clock be beside its. */
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
