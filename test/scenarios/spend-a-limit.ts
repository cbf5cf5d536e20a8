/** Every router calls for a unit at once, until the limit is reached: exactly so many succeed as there are units. */
import { mostAtOnce } from '../support/journal-fleet.ts';
import { readAccount } from './account.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';

export async function spendLimit(
  stage: Stage,
  { calls, units }: { readonly calls: number; readonly units: number },
): Promise<Outcome> {
  const projectId = await stage.aProject(units);
  const capability = 'spend-a-limit';
  const cost_model = { type: 'per_call', rate_usd: 1 } as const;
  const fleet = await stage.startFleet(projectId, [
    { name: capability, cost_model, max_concurrency: 256, tags: ['hosted'], minMs: 1, maxMs: 5 },
  ]);
  const reports = await stage.runEverywhere(manyOrders(calls, { projectId, capability }), 32);
  const port = fleet.instances[0]?.port ?? 0;
  return {
    ends: countEnds(reports),
    kills: 0,
    most: mostAtOnce(await fleet.journal(), port),
    account: await readAccount(stage.db, projectId),
  };
}
