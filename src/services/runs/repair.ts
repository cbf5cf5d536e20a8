/**
 * Repairs runs whose row and workflow have come apart. Both repairs find 0 in steady state.
 *
 * Runs that are open here and whose workflow Temporal has ended without them, terminated by hand or timed out, are
 * closed. They are found by one query for the workflows that closed lately, not by a question for each run, and
 * now and then by one for all that closed since the oldest open run began, so that none is missed for good. A
 * workflow that ends by itself has closed its run before.
 *
 * Runs that Temporal has forgotten are started again.
 */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { Db } from '../../db/connect.ts';
import {
  forgetStart,
  listDelivered,
  listOpenAmong,
  type OpenRunRow,
  readOldestOpen,
} from '../../db/run/run-delivery.ts';
import { createRestartForgotten, type Forgettable } from '../delivery/deliveries.ts';
import { closeLostRun, type LostEnd } from './closing.ts';
import type { RunDelivery } from './delivery.ts';

interface ReconcileDependencies {
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

// Runs that Temporal has forgotten go on: a step that has succeeded answers with its result, one that waits looks
// at its row.

interface RestartDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'listRunning' | 'isForgotten'>;
  readonly delivery: Pick<RunDelivery, 'startSoon'>;
  readonly logger: Logger;
}

type DeliveredRun = Awaited<ReturnType<typeof listDelivered>>[number];

/** @returns how many it starts again */
export function createRestartForgottenRuns(
  { db, workflows, delivery, logger }: RestartDependencies,
  watch: Pick<Forgettable<DeliveredRun>, 'onKnown' | 'settled'> = {},
) {
  return createRestartForgotten<DeliveredRun>(db, logger, {
    what: 'a run',
    idOf: ({ run_id }) => run_id,
    list: listDelivered,
    listRunning: workflows.listRunning,
    isForgotten: workflows.isForgotten,
    forgetStart,
    startSoon: delivery.startSoon,
    ...watch,
  });
}
