/** Every key is sent many times at once, over all routers: one call is made and paid, and all are answered alike. */
import { readAccount } from './account.ts';
import { countAnswers } from './answers.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';

export interface Asked extends Omit<Outcome, 'kills' | 'most'> {
  /** Different answers to the key that was given most. */
  readonly answers: number;
  /** Calls that reached the instance. */
  readonly calls: number;
}

interface Asking {
  readonly keys: number;
  /** How often each is sent. */
  readonly times: number;
}

export async function askWithOneKey(stage: Stage, { keys, times }: Asking): Promise<Asked> {
  const projectId = await stage.aProject(0);
  const capability = 'ask-with-one-key';
  const cost_model = { type: 'per_call', rate_usd: 0.01 } as const;
  const fleet = await stage.startFleet(projectId, [
    { name: capability, cost_model, max_concurrency: 64, tags: ['hosted'], minMs: 100, maxMs: 200 },
  ]);
  const orders = manyOrders(keys * times, (at) => ({
    projectId,
    capability,
    key: `one-key-${Math.floor(at / times)}`,
    isKeyed: true,
    patienceMs: 30_000,
  }));
  const reports = await stage.runEverywhere(orders, times);
  return {
    ends: countEnds(reports),
    answers: countAnswers(reports),
    calls: (await fleet.journal()).filter(({ kind }) => kind === 'begin').length,
    account: await readAccount(stage.db, projectId),
  };
}
