/** An instance dies, and a process of another capability takes its port: it is sent nothing that was meant for the dead one. */
import type { Db } from '../../src/db/connect.ts';
import { toOpaqueKey } from '../../src/use-cases/routing/call.ts';
import type { JournalFleet, JournalInstance } from '../support/journal-fleet.ts';
import { waitFor } from '../support/wait.ts';
import { startLoad } from './load.ts';
import { countEnds, manyOrders, patient } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';
import { waitForAnswers } from './wait-for-answer.ts';

export interface Moved {
  readonly ends: Outcome['ends'];
  /** Calls that the new process got, by the capability that they asked for. */
  readonly got: Outcome['ends'];
  /** Of the dead one, at the end. */
  readonly state: string;
}

const names = { old: 'move-into-a-port.old', next: 'move-into-a-port.next' } as const;

/** How many calls reached the instances, by the capability that was asked for; records come soon after the answers. */
async function countByCapability(db: Db, fleet: JournalFleet): Promise<Outcome['ends']> {
  const endpoints = fleet.instances.map(({ endpoint }) => endpoint);
  const begun = (await fleet.journal()).filter(({ kind }) => kind === 'begin');
  const asked = await waitFor('the records of all calls', async () => {
    const attempts: { key: string; capability: string }[] = await db('attempt')
      .whereIn('endpoint', endpoints)
      .select('key', 'capability');
    const known = new Map(attempts.map(({ key, capability }) => [toOpaqueKey(key), capability]));
    const all = begun.flatMap(({ key = '' }) => known.get(key) ?? []);
    return all.length === begun.length ? all : undefined;
  });
  const counts: Record<string, number> = {};
  for (const name of asked) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

export async function moveIntoPort(stage: Stage, { calls }: { readonly calls: number }): Promise<Moved> {
  const { db } = stage;
  const projectId = await stage.aProject(0);
  const member = { max_concurrency: 16, minMs: 5, maxMs: 15 };
  const fleet = await stage.startFleet(projectId, [{ ...member, name: names.old }]);
  await stage.startFleet(projectId, [{ ...member, name: names.old, tags: ['hosted'] }]);
  const { endpoint, port } = fleet.instances[0] as JournalInstance;
  const load = startLoad(stage, () => manyOrders(16, { projectId, capability: names.old, ...patient }), 2);
  const orders = manyOrders(calls, (at) => {
    const capability = at % 8 < 4 ? names.old : names.next;
    return { projectId, capability, ...patient };
  });
  const next = await (async () => {
    try {
      await waitForAnswers(stage.db, fleet.instances);
      await fleet.kill();
      await waitFor('it to be found dead', () => db('instance').where({ endpoint, state: 'down' }).first());
      return await stage.startFleet(projectId, [{ ...member, name: names.next, port }]);
    } finally {
      await load.end();
    }
  })();
  const reports = await stage.runEverywhere(orders, 4);
  const old = await db('instance').where({ endpoint, name: names.old }).first('state');
  return {
    ends: countEnds([...(await load.end()), ...reports]),
    got: await countByCapability(db, next),
    state: old?.state,
  };
}
