/**
 * Closes runs that are open here and whose workflow Temporal has ended without them: terminated by hand, timed out. They
 * are found by one query for what closed lately, not by asking for each, and now and then by one for all that closed
 * since the oldest open run began, so that none is missed for good; a workflow that ends by itself has closed its run
 * before. 0 in steady state.
 */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { Db } from '../../db/connect.ts';
import { listOpenAmong, type OpenRunRow, readOldestOpen } from '../../db/run/run-open.ts';
import { closeLostRun, type LostEnd } from './close-lost-run.ts';

export interface ReconcileDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'listClosed' | 'isOpen'>;
  readonly logger: Logger;
}

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

export function createReconcileRuns(dependencies: ReconcileDependencies): () => Promise<number> {
  const { db, workflows } = dependencies;
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
    for await (const runIds of inBatches(workflows.listClosed(since))) {
      closed += await closeAll(dependencies, runIds);
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

async function closeAll(dependencies: ReconcileDependencies, runIds: readonly string[]): Promise<number> {
  let closed = 0;
  for (const row of await listOpenAmong(dependencies.db, runIds)) {
    if (await close(dependencies, row)) closed += 1;
  }
  return closed;
}

/** One that was reset goes on under the same id. */
async function close({ db, workflows, logger }: ReconcileDependencies, row: OpenRunRow): Promise<boolean> {
  if (await workflows.isOpen(row)) return false;
  await closeLostRun(db, row, endOf(row));
  logger.warn({ run_id: row.run_id }, 'the workflow of a run had ended without closing it');
  return true;
}
