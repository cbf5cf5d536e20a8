/**
 * Lets what a restored database holds go on. Postgres is the record: Temporal may be empty, and what it lacks is started
 * again from the rows, under the same ids, so that doing it twice is doing it once. Where Temporal is not empty, a run
 * that goes on there is left alone; one that has ended there and not here shows that Temporal is newer than the
 * database, and is only started again when `restartsAll` says so.
 */
import type { Logger } from 'pino';
import type { RunWorkflows } from '../../clients/temporal/run-workflows.ts';
import { loseExpiredAttempts } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import {
  type InterruptedCall,
  listInterruptedCalls,
  type RestoredState,
  readRestoredState,
} from '../../db/recovery/restored-state.ts';
import { AppError } from '../../errors/app-error.ts';
import type { RestartForgotten } from '../delivery/restart-forgotten.ts';
import type { RunDelivery } from '../runs/deliver-run.ts';
import { createRestartForgottenRuns, type DeliveredRun } from '../runs/restart-forgotten-runs.ts';

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
  readonly logger: Logger;
}

const mostCalls = 1_000;
const looks = 120;
const pauseMs = 250;

async function eraseWholly(
  { workflows, pause }: Pick<RecoverDependencies, 'workflows' | 'pause'>,
  run: DeliveredRun,
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

async function* nobody(): AsyncIterable<string> {}

async function restartRuns(dependencies: RecoverDependencies, restartsAll: boolean): Promise<RunCounts> {
  const { workflows, delivery } = dependencies;
  const ended_in_temporal: string[] = [];
  let running_runs = 0;
  const erase = async (run: DeliveredRun): Promise<true> => {
    await eraseWholly(dependencies, run);
    return true;
  };
  const restart = createRestartForgottenRuns(
    restartsAll ? { ...dependencies, workflows: { listRunning: nobody, isForgotten: erase } } : dependencies,
    {
      onKnown: async (run, isListed) => {
        if (isListed || (await workflows.isOpen(run))) running_runs += 1;
        else ended_in_temporal.push(run.run_id);
      },
      settled: delivery.settled, // no more of them in line than it takes
    },
  );
  const restarted_runs = await restart(0);
  return { restarted_runs, running_runs, ended_in_temporal };
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
