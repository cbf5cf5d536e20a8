/**
 * Lets what a restored database holds go on. Postgres is the record: Temporal may be empty, and what it lacks is started
 * again from the rows, under the same ids, so that doing it twice is doing it once. Where Temporal is not empty, a run
 * that goes on there is left alone; one that has ended there and not here shows that Temporal is newer than the
 * database, and is only started again when `restartsAll` says so.
 */
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import { loseExpiredAttempts } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import {
  type InterruptedCall,
  listInterruptedCalls,
  type RestoredState,
  readRestoredState,
} from '../../db/recovery/restored-state.ts';
import { forgetStart, listDelivered } from '../../db/run/run-open.ts';
import { AppError } from '../../errors/app-error.ts';
import type { RestartForgotten } from '../delivery/restart-forgotten.ts';
import type { RunDelivery } from '../runs/deliver-run.ts';

export interface RecoveryReport extends Omit<RestoredState, 'last_at'> {
  /** The last thing that the database knows of. What happened later happens again. */
  readonly last_at: string | null;
  /** Names that Temporal did not have. */
  readonly search_attributes: readonly string[];
  /** Calls that were under way at that moment, which may happen twice; the first thousand. */
  readonly interrupted_calls: readonly InterruptedCall[];
  readonly restarted_runs: number;
  /** They go on in Temporal. */
  readonly running_runs: number;
  /** Open here and ended in Temporal; nothing was done about them. */
  readonly ended_in_temporal: readonly string[];
  readonly restarted_ladders: number;
  readonly restored_schedules: number;
}

export interface RecoverDependencies {
  readonly db: Db;
  readonly workflows: Pick<RunWorkflows, 'listRunning' | 'isForgotten' | 'isOpen' | 'erase'>;
  readonly delivery: Pick<RunDelivery, 'startSoon' | 'settled'>;
  readonly restartLadders: RestartForgotten;
  readonly restartSchedules: RestartForgotten;
  readonly registerSearchAttributes: () => Promise<readonly string[]>;
  /** Between two looks at what Temporal is about to delete. */
  readonly pause: (ms: number) => Promise<void>;
}

const mostCalls = 1_000;
const batch = 500;
const looks = 120;
const pauseMs = 250;

type OpenRun = Awaited<ReturnType<typeof listDelivered>>[number];

async function eraseWholly(
  { workflows, pause }: Pick<RecoverDependencies, 'workflows' | 'pause'>,
  run: OpenRun,
): Promise<void> {
  for (let look = 0; look < looks; look++) {
    if (await workflows.erase(run)) return;
    await pause(pauseMs);
  }
  throw new AppError('unavailable', `Temporal does not delete the workflow of ${run.run_id}; try again`);
}

interface RunCounts {
  readonly restarted_runs: number;
  readonly running_runs: number;
  readonly ended_in_temporal: readonly string[];
}

async function restartRuns(dependencies: RecoverDependencies, restartsAll: boolean): Promise<RunCounts> {
  const { db, workflows, delivery } = dependencies;
  const running = new Set<string>();
  for await (const id of workflows.listRunning()) running.add(id);
  const ended: string[] = [];
  let restarted = 0;
  let goingOn = 0;
  const attend = async (run: OpenRun): Promise<void> => {
    if (restartsAll) await eraseWholly(dependencies, run);
    else if (running.has(run.run_id) || !(await workflows.isForgotten(run))) {
      if (running.has(run.run_id) || (await workflows.isOpen(run))) goingOn += 1;
      else ended.push(run.run_id);
      return;
    }
    if (!(await forgetStart(db, run.run_id))) return;
    restarted += 1;
    delivery.startSoon(run.run_id);
  };
  for (let after = ''; ; ) {
    const runs = await listDelivered(db, { after, olderThanMs: 0, limit: batch });
    for (const run of runs) await attend(run);
    await delivery.settled(); // no more of them in line than it takes
    const last = runs.at(-1);
    if (last === undefined)
      return { restarted_runs: restarted, running_runs: goingOn, ended_in_temporal: ended };
    after = last.run_id;
  }
}

/** May be repeated, also beside servers and workers. */
export async function recover(
  dependencies: RecoverDependencies,
  { restartsAll }: { readonly restartsAll: boolean },
): Promise<RecoveryReport> {
  const { db } = dependencies;
  const { last_at, ...state } = await readRestoredState(db);
  const interrupted_calls = await listInterruptedCalls(db, mostCalls);
  const search_attributes = await dependencies.registerSearchAttributes();
  while ((await loseExpiredAttempts(db)) > 0);
  const runs = await restartRuns(dependencies, restartsAll);
  return {
    last_at: last_at?.toISOString() ?? null,
    ...state,
    search_attributes,
    interrupted_calls,
    ...runs,
    restarted_ladders: await dependencies.restartLadders(0),
    restored_schedules: await dependencies.restartSchedules(0),
  };
}
