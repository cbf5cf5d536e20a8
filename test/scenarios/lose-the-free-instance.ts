/**
 * The free instance is killed at work, or answers nothing but 500 for a while: the paid one takes over, no caller
 * sees a failure, and when the free one works again it is used again.
 */
import { type JournalFleet, type JournalInstance, mostAtOnce } from '../support/journal-fleet.ts';
import type { CallReport } from '../support/router-messages.ts';
import { waitFor } from '../support/wait.ts';
import { readAccount } from './account.ts';
import { startLoad } from './load.ts';
import { countEnds, manyOrders, patient } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';
import { waitForAnswers } from './wait-for-answer.ts';

export interface Lost extends Outcome {
  /** Calls that were let through to see whether the free instance works again. */
  readonly trials: number;
}

interface Cast {
  readonly projectId: string;
  readonly capability: string;
  readonly fleet: JournalFleet;
  readonly free: JournalInstance;
}

async function assemble(stage: Stage, capability: string): Promise<Cast> {
  const projectId = await stage.aProject(0);
  const speed = { name: capability, minMs: 10, maxMs: 30 };
  const fleet = await stage.startFleet(projectId, [{ ...speed, max_concurrency: 4 }]);
  const cost_model = { type: 'per_call', rate_usd: 0.000_1 } as const;
  await stage.startFleet(projectId, [{ ...speed, max_concurrency: 128, tags: ['hosted'], cost_model }]);
  return { projectId, capability, fleet, free: fleet.instances[0] as JournalInstance };
}

function startCalls(stage: Stage, { projectId, capability }: Cast) {
  const order = { projectId, capability, priority: 'interactive', ...patient } as const;
  return startLoad(stage, () => manyOrders(16, order), 2);
}

function waitForInstance({ db }: Stage, { free }: Cast, what: string, condition: string): Promise<unknown> {
  return waitFor(what, () =>
    db('instance').where({ endpoint: free.endpoint }).whereRaw(condition).first('instance_id'),
  );
}

async function conclude(
  { db }: Stage,
  { projectId, fleet, free }: Cast,
  reports: readonly CallReport[],
  kills: number,
): Promise<Lost> {
  const { rows } = await db.raw<{ rows: [{ trials: number }] }>(
    'select count(*)::int as trials from trial join attempt using (attempt_id) where project_id = ?',
    [projectId],
  );
  return {
    ends: countEnds(reports),
    kills,
    most: mostAtOnce(await fleet.journal(), free.port),
    account: await readAccount(db, projectId),
    trials: rows[0].trials,
  };
}

/** Killed with SIGKILL at work and started again, so many times. */
export async function killFreeInstance(stage: Stage, { times }: { readonly times: number }): Promise<Lost> {
  const cast = await assemble(stage, 'kill-the-free-instance');
  const load = startCalls(stage, cast);
  try {
    for (let time = 0; time < times; time++) {
      await waitForAnswers(stage.db, [cast.free]);
      await cast.fleet.kill();
      await waitForInstance(stage, cast, 'the free instance to be down', "state = 'down'");
      await cast.fleet.restart();
      await stage.register(cast.projectId, cast.free);
    }
    await waitForAnswers(stage.db, [cast.free]);
  } finally {
    await load.end();
  }
  return conclude(stage, cast, await load.end(), times);
}

/** Ends every call with 500 until its breaker is open, then works again; its process stays. */
export async function breakFreeInstance(stage: Stage): Promise<Lost> {
  const cast = await assemble(stage, 'break-the-free-instance');
  const load = startCalls(stage, cast);
  try {
    await waitForAnswers(stage.db, [cast.free]);
    cast.fleet.setFailing(cast.free.port, true);
    await waitForInstance(stage, cast, 'its breaker to open', 'breaker_until is not null');
    cast.fleet.setFailing(cast.free.port, false);
    await waitForAnswers(stage.db, [cast.free]);
  } finally {
    await load.end();
  }
  return conclude(stage, cast, await load.end(), 0);
}
