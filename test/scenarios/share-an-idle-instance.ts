/** One free idle instance of one slot, a paid one with room, and more calls at once than either is good for. */
import { mostAtOnce } from '../support/journal-fleet.ts';
import { readAccount } from './account.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';

export interface Shared extends Outcome {
  /** Calls that the free instance took. */
  readonly free: number;
}

export async function shareIdleInstance(
  stage: Stage,
  { calls }: { readonly calls: number },
): Promise<Shared> {
  const projectId = await stage.aProject(0);
  const capability = 'share-an-idle-instance';
  const speed = { minMs: 20, maxMs: 40 };
  const fleet = await stage.startFleet(projectId, [
    { name: capability, ...speed },
    {
      name: capability,
      ...speed,
      max_concurrency: 128,
      tags: ['hosted'],
      cost_model: { type: 'per_call', rate_usd: 0.000_1 },
    },
  ]);
  const orders = manyOrders(calls, { projectId, capability, priority: 'interactive' });
  const reports = await stage.runEverywhere(orders, 100);
  const journal = await fleet.journal();
  const port = fleet.instances[0]?.port ?? 0;
  return {
    ends: countEnds(reports),
    kills: 0,
    most: mostAtOnce(journal, port),
    account: await readAccount(stage.db, projectId),
    free: journal.filter((entry) => entry.port === port && entry.kind === 'begin').length,
  };
}
