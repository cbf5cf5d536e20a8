/**
 * Every router has 64 callers at once, of three projects, for free and paid instances: all are served, none waits for a
 * lock without need.
 */
import { mostAtOnce } from '../support/journal-fleet.ts';
import { readAccount } from './account.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';

export interface Crowd extends Omit<Outcome, 'kills' | 'account'> {
  readonly deadlocks: number;
  /** What the projects have paid, and what the paid instances were sent. */
  readonly spentUsd: number;
  readonly paidCalls: number;
}

const callers = 64;
const priorities = ['interactive', 'standard', 'batch'] as const;

async function countDeadlocks({ db }: Stage): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ deadlocks: number }] }>(
    'select deadlocks::int from pg_stat_database where datname = current_database()',
  );
  return rows[0].deadlocks;
}

export async function crowdRouters(stage: Stage, { calls }: { readonly calls: number }): Promise<Crowd> {
  const projects = await Promise.all(priorities.map(() => stage.aProject(calls)));
  const names = ['one', 'two', 'three'].map((name) => `crowd-the-routers.${name}`);
  const cost_model = { type: 'per_call', rate_usd: 1 } as const;
  const common = { minMs: 10, maxMs: 40, shared_with: 'all' } as const;
  const owner = projects[0] as string;
  const free = await stage.startFleet(
    owner,
    names.map((name) => ({ ...common, name, max_concurrency: 4 })),
  );
  const paid = await stage.startFleet(
    owner,
    names.map((name) => ({ ...common, name, cost_model, max_concurrency: 128, tags: ['hosted'] })),
  );
  const before = await countDeadlocks(stage);
  const orders = manyOrders(calls, (at) => ({
    projectId: projects[at % 3] as string,
    capability: names[Math.floor(at / 3) % 3] as string,
    priority: priorities[Math.floor(at / 9) % 3] as (typeof priorities)[number],
  }));
  const reports = await stage.runEverywhere(orders, callers);
  await stage.settled();
  const accounts = await Promise.all(projects.map((projectId) => readAccount(stage.db, projectId)));
  const journal = await free.journal();
  return {
    ends: countEnds(reports),
    most: Math.max(...free.instances.map(({ port }) => mostAtOnce(journal, port))),
    deadlocks: (await countDeadlocks(stage)) - before,
    spentUsd: accounts.reduce((sum, { spentUsd }) => sum + spentUsd, 0),
    paidCalls: (await paid.journal()).filter(({ kind }) => kind === 'begin').length,
  };
}
