/**
 * The process of an instance is replaced on the same port, and its DELETE comes after its successor's registration, by
 * another router: the successor stays. One that means the successor takes it out, for all routers.
 */
import type { DeregisterAnswer } from '@capstan/core/contracts/capability';
import type { JournalInstance } from '../support/journal-fleet.ts';
import { readAccount } from './account.ts';
import { startLoad } from './load.ts';
import { countEnds, manyOrders, patient } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';
import { waitForAnswers } from './wait-for-answer.ts';

export interface Farewell extends Omit<Outcome, 'most'> {
  /** By which it was taken out. */
  readonly late: readonly DeregisterAnswer[];
  readonly meant: DeregisterAnswer;
  /** How calls ended afterwards. */
  readonly afterwards: Outcome['ends'];
}

const capability = 'say-goodbye-late';

/** @param lives how often the process is replaced */
export async function sayGoodbyeLate(stage: Stage, { lives }: { readonly lives: number }): Promise<Farewell> {
  const projectId = await stage.aProject(0);
  const fleet = await stage.startFleet(projectId, [{ name: capability, max_concurrency: 16 }]);
  const instance = fleet.instances[0] as JournalInstance;
  const goodbye = { projectId, name: capability, endpoint: instance.endpoint };
  const order = { projectId, capability };
  const routers = await stage.routers();
  const late: DeregisterAnswer[] = [];
  const load = startLoad(stage, () => manyOrders(8, { ...order, ...patient }), 1);
  try {
    for (let life = 0; life < lives; life++) {
      await fleet.restart();
      await stage.register(projectId, instance);
      late.push(...(await Promise.all(routers.map((router) => router.deregister(goodbye)))));
      await waitForAnswers(stage.db, [instance]);
    }
  } finally {
    await load.end();
  }
  await stage.settled(); // it drains as long as calls are open
  await stage
    .db('instance')
    .where({ endpoint: instance.endpoint })
    .update({
      registered_at: stage.db.raw(`registered_at - interval '11 seconds'`),
    });
  const meant = await (routers[0] as (typeof routers)[number]).deregister(goodbye);
  const afterwards = await stage.runEverywhere(manyOrders(8, { ...order, maxWaitMs: 0 }), 2);
  return {
    ends: countEnds(await load.end()),
    kills: lives,
    late,
    meant,
    afterwards: countEnds(afterwards),
    account: await readAccount(stage.db, projectId),
  };
}
