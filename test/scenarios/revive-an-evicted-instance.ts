/** An instance that was given up long ago sends a heartbeat: every router calls it again at once. */
import { mostAtOnce } from '../support/journal-fleet.ts';
import { waitFor } from '../support/wait.ts';
import { readAccount } from './account.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';

export interface Revived extends Outcome {
  readonly whileEvicted: Outcome['ends'];
  /** From the heartbeat until each router had its first answer. */
  readonly afterMs: number;
}

export async function reviveEvictedInstance(stage: Stage): Promise<Revived> {
  const projectId = await stage.aProject(0);
  const capability = 'revive-an-evicted-instance';
  const fleet = await stage.startFleet(projectId, [{ name: capability, max_concurrency: 16 }]);
  const endpoint = fleet.instances[0]?.endpoint ?? '';
  await stage.db.raw(
    `update instance set state = 'down', reason = 'gone', failed_probes = 9, next_probe_at = null, spec_digest = null,
       down_since = now() - interval '20 minutes', last_heartbeat_at = now() - interval '20 minutes'
     where endpoint = ?`,
    [endpoint],
  );
  const order = { projectId, capability } as const;
  const refused = await stage.runEverywhere(manyOrders(8, { ...order, maxWaitMs: 0 }), 2);
  const routers = await stage.routers();
  const startedAt = performance.now();
  await stage.registry.heartbeat(projectId, capability, { endpoint });
  const first = routers.map(async (router) =>
    waitFor('a call to succeed', async () => {
      const reports = await router.run(manyOrders(1, { ...order, maxWaitMs: 0 }), 1);
      return reports.find(({ kind }) => kind === 'succeeded');
    }),
  );
  const reports = await Promise.all(first);
  return {
    whileEvicted: countEnds(refused),
    ends: countEnds(reports),
    afterMs: performance.now() - startedAt,
    kills: 0,
    most: mostAtOnce(await fleet.journal(), fleet.instances[0]?.port ?? 0),
    account: await readAccount(stage.db, projectId),
  };
}
