/** The project's day has no money left and a free instance works: no caller has to pay. */
import { mostAtOnce } from '../support/journal-fleet.ts';
import { readAccount } from './account.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';

export interface Moneyless extends Outcome {
  /** How calls ended before there was a free instance. */
  readonly before: Outcome['ends'];
}

/** Calls at once in each router. */
const concurrency = 4;

/** The free instance has room for all calls at once, so that none is sent back for want of a slot. */
export async function doWithoutMoney(
  stage: Stage,
  { calls }: { readonly calls: number },
): Promise<Moneyless> {
  const units = 8;
  const projectId = await stage.aProject(units);
  const capability = 'do-without-money';
  const member = { name: capability, minMs: 5, maxMs: 15 };
  const cost_model = { type: 'per_call', rate_usd: 1 } as const;
  await stage.startFleet(projectId, [{ ...member, max_concurrency: 64, tags: ['hosted'], cost_model }]);
  const order = { projectId, capability, priority: 'interactive' } as const;
  const spent = await stage.runEverywhere(manyOrders(units, order), units);
  await stage.settled(); // what is still reserved is not spent
  const refused = await stage.runEverywhere(manyOrders(4, order), 1);
  const free = await stage.startFleet(projectId, [
    { ...member, max_concurrency: 2 * concurrency * stage.places },
  ]);
  const reports = await stage.runEverywhere(manyOrders(calls, order), concurrency);
  return {
    before: countEnds([...spent, ...refused]),
    ends: countEnds(reports),
    kills: 0,
    most: mostAtOnce(await free.journal(), free.instances[0]?.port ?? 0),
    account: await readAccount(stage.db, projectId),
  };
}
