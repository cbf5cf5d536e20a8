/** Of ten instances three are dead and three are silent, from one moment on: the rest serves the callers of every router. */
import { readAccount } from './account.ts';
import { startLoad } from './load.ts';
import { countEnds, manyOrders, patient } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';
import { waitForAnswers } from './wait-for-answer.ts';

export interface Diminished extends Omit<Outcome, 'most'> {
  /** Attempts on the six from then on. */
  readonly inVain: number;
}

const capability = 'lose-most-of-a-fleet';
const timeoutMs = 1_000;

export async function loseMostOfFleet(
  stage: Stage,
  { calls }: { readonly calls: number },
): Promise<Diminished> {
  const { db } = stage;
  const projectId = await stage.aProject(0);
  const members = (count: number) =>
    Array.from({ length: count }, () => ({ name: capability, max_concurrency: 8, minMs: 10, maxMs: 30 }));
  await stage.startFleet(projectId, members(4));
  const dead = await stage.startFleet(projectId, members(3));
  const silent = await stage.startFleet(projectId, members(3));
  // Three may be on the silent ones, and on a busy machine one that lives may be late too.
  const order = { projectId, capability, timeoutMs, retryMax: 8, ...patient };
  const load = startLoad(stage, () => manyOrders(24, order), 3);
  try {
    await waitForAnswers(stage.db, dead.instances);
    await waitForAnswers(stage.db, silent.instances);
    await dead.kill();
    silent.silence();
  } finally {
    await load.end();
  }
  const before = await load.end();
  const reports = await stage.runEverywhere(manyOrders(calls, order), 8);
  const lost = [...dead.instances, ...silent.instances].map(({ endpoint }) => endpoint);
  const inVain = await db('attempt').whereIn('endpoint', lost).whereNotNull('error');
  return {
    ends: countEnds([...before, ...reports]),
    kills: dead.instances.length,
    inVain: inVain.length,
    account: await readAccount(db, projectId),
  };
}
