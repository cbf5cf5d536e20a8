/**
 * A router is stopped with keyed, paid calls in flight, and continues when others have taken them over: every key has
 * one answer, and each call that was sent is paid once.
 */
import type { JournalFleet } from '../support/journal-fleet.ts';
import type { CallReport } from '../support/router-messages.ts';
import type { RouterProcess } from '../support/routers.ts';
import { waitFor } from '../support/wait.ts';
import { readAccount } from './account.ts';
import { countAnswers } from './answers.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';

export interface Away extends Omit<Outcome, 'kills' | 'most'> {
  /** Different answers to the key that was given most. */
  readonly answers: number;
  /** Calls that reached the instance. */
  readonly sent: number;
  /** Attempts that were lost because their router was away. */
  readonly lost: number;
}

const capability = 'send-a-router-away';

/** Calls of others continue; the leases of the one that is away end; its keys grow old. */
async function letLeasesEnd({ db }: Stage, projectId: string): Promise<void> {
  const held = () =>
    db('attempt')
      .where({ project_id: projectId, state: 'dispatched' })
      .whereLike('key', '%:away-%')
      .whereRaw('lease_until > clock_timestamp()')
      .first();
  await waitFor('its leases to end', async () => (await held()) === undefined);
  await db('idempotency')
    .where({ project_id: projectId, status: 0 })
    .update({ created_at: db.raw(`created_at - interval '11 seconds'`) });
}

interface Cast {
  readonly projectId: string;
  readonly fleet: JournalFleet;
}

async function countSent(fleet: JournalFleet): Promise<number> {
  return (await fleet.journal()).filter(({ kind }) => kind === 'begin').length;
}

function share<Item>(items: readonly Item[], routers: readonly RouterProcess[], at: number): readonly Item[] {
  return items.filter((_, item) => item % routers.length === at);
}

async function play(stage: Stage, { projectId, fleet }: Cast, calls: number): Promise<readonly CallReport[]> {
  const [away, ...others] = (await stage.routers()) as [RouterProcess, ...RouterProcess[]];
  const order = { projectId, capability, isKeyed: true, patienceMs: 30_000 };
  const keyed = manyOrders(calls, (at) => ({ ...order, key: `away-${at}` }));
  const asked = away.run(keyed, calls);
  try {
    await waitFor('its calls to be under way', async () => (await countSent(fleet)) === calls);
    away.pause();
    const meanwhile = Promise.all(
      others.map((router) => router.run(manyOrders(calls, { projectId, capability }), 4)),
    );
    await letLeasesEnd(stage, projectId);
    const taken = await Promise.all(others.map((router, at) => router.run(share(keyed, others, at), calls)));
    away.resume();
    return [...(await meanwhile), ...taken, await asked].flat();
  } finally {
    away.resume();
  }
}

/** @param calls in flight in it, and made by each other router meanwhile */
export async function sendRouterAway(stage: Stage, { calls }: { readonly calls: number }): Promise<Away> {
  const projectId = await stage.aProject(0);
  const cost_model = { type: 'per_call', rate_usd: 0.01 } as const;
  const fleet = await stage.startFleet(projectId, [
    {
      name: capability,
      cost_model,
      max_concurrency: 64 + 2 * calls,
      tags: ['hosted'],
      minMs: 500,
      maxMs: 700,
    },
  ]);
  const reports = await play(stage, { projectId, fleet }, calls);
  await stage.settled();
  const lost = await stage.db('attempt').where({ project_id: projectId, state: 'lost' });
  return {
    ends: countEnds(reports),
    answers: countAnswers(reports),
    sent: await countSent(fleet),
    lost: lost.length,
    account: await readAccount(stage.db, projectId),
  };
}
