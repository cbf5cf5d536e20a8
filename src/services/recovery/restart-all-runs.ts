/**
 * Starts all open runs anew, whatever Temporal knows of them: that is deleted first. What had not been started before
 * is left to servers, whose start would otherwise meet a workflow of the same id that has ended. A deletion takes
 * Temporal a minute or two, so many are waited for together; one that is not through in time holds up no other.
 */
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import type { Db } from '../../db/connect.ts';
import type { OpenRun } from '../../db/recovery/restored-state.ts';
import { forgetStart } from '../../db/run/run-open.ts';
import type { RunDelivery } from '../runs/deliver-run.ts';
import { pageOpenRuns } from './open-runs.ts';

export interface RestartAllDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'erase'>;
  readonly delivery: Pick<RunDelivery, 'startSoon' | 'settled'>;
  /** Between two looks at what Temporal is about to delete. */
  readonly pause: (ms: number) => Promise<void>;
}

/** Five minutes at least. */
const looks = 300;
const pauseMs = 1_000;
/** Temporal is asked of so many at once. */
const atOnce = 16;

/** @returns those of which Temporal still has something */
async function eraseEach(
  { workflows }: Pick<RestartAllDependencies, 'workflows'>,
  runs: readonly OpenRun[],
): Promise<readonly OpenRun[]> {
  const left: OpenRun[] = [];
  for (let at = 0; at < runs.length; at += atOnce) {
    const some = runs.slice(at, at + atOnce);
    const gone = await Promise.all(some.map((run) => workflows.erase(run)));
    left.push(...some.filter((_, index) => !gone[index]));
  }
  return left;
}

/** @returns those of which Temporal still has something after five minutes */
async function eraseWholly(
  dependencies: RestartAllDependencies,
  runs: readonly OpenRun[],
): Promise<readonly OpenRun[]> {
  let left = await eraseEach(dependencies, runs);
  for (let look = 0; look < looks && left.length > 0; look++) {
    await dependencies.pause(pauseMs);
    left = await eraseEach(dependencies, left);
  }
  return left;
}

/** @returns how many were started again, and those that were not, since Temporal still had something of them */
export async function restartAllRuns(
  dependencies: RestartAllDependencies,
): Promise<{ readonly restarted_runs: number; readonly undeleted_runs: readonly string[] }> {
  const { db, delivery } = dependencies;
  const undeleted_runs: string[] = [];
  let restarted_runs = 0;
  for await (const runs of pageOpenRuns(db)) {
    const left = new Set(await eraseWholly(dependencies, runs));
    for (const run of runs) {
      const { run_id } = run;
      if (left.has(run)) undeleted_runs.push(run_id);
      else if (run.is_delivered && (await forgetStart(db, run_id))) {
        delivery.startSoon(run_id);
        restarted_runs += 1;
      }
    }
    await delivery.settled(); // no more of them in line than it takes
  }
  return { restarted_runs, undeleted_runs };
}
