/**
 * Starts runs again that are open here and of which Temporal knows nothing: its data was lost, or an older state of it
 * restored. Rows hold all that a run needs to go on: a step that has succeeded answers with its result, one that waits
 * looks at its row. One query lists what runs there; whom it does not name is asked for, because it may lag behind. 0 in
 * steady state.
 */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { Db } from '../../db/connect.ts';
import { forgetStart, listDelivered } from '../../db/run/run-open.ts';
import type { RunDelivery } from './deliver-run.ts';

export interface RestartDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'listRunning' | 'isForgotten'>;
  readonly delivery: Pick<RunDelivery, 'startSoon'>;
  readonly logger: Logger;
}

/** A start that was delivered just now may not be listed yet. */
const settledMs = 60_000;
const batch = 1_000;

/** @returns how many it starts again */
export function createRestartForgottenRuns(dependencies: RestartDependencies): () => Promise<number> {
  const { db, workflows } = dependencies;
  return async () => {
    let rows = await listDelivered(db, { after: '', olderThanMs: settledMs, limit: batch });
    if (rows.length === 0) return 0;
    const running = new Set<string>();
    for await (const runId of workflows.listRunning()) running.add(runId);
    let restarted = 0;
    while (rows.length > 0) {
      for (const run of rows) {
        if (!running.has(run.run_id) && (await restart(dependencies, run))) restarted += 1;
      }
      const after = rows.at(-1)?.run_id ?? '';
      rows = await listDelivered(db, { after, olderThanMs: settledMs, limit: batch });
    }
    return restarted;
  };
}

async function restart(
  { db, workflows, delivery, logger }: RestartDependencies,
  run: { readonly run_id: string; readonly pipeline: string },
): Promise<boolean> {
  if (!(await workflows.isForgotten(run))) return false;
  if (!(await forgetStart(db, run.run_id))) return false;
  logger.warn({ run_id: run.run_id }, 'Temporal had forgotten the workflow of a run; it is started again');
  delivery.startSoon(run.run_id);
  return true;
}
