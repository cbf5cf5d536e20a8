/**
 * All routers spend one limit, on calls that cost a fixed price and on calls that cost by time; some are cancelled,
 * some get no answer in time, and routers are killed and replaced. A call whose router died is made again by the next.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type JournalFleet, mostAtOnce } from '../support/journal-fleet.ts';
import type { CallOrder, CallReport } from '../support/router-messages.ts';
import { readAccount } from './account.ts';
import { countEnds, manyOrders } from './orders.ts';
import type { Outcome } from './outcome.ts';
import type { Stage } from './stage.ts';

export interface Race {
  readonly calls: number;
  readonly limitUsd: number;
  /** Of all calls. */
  readonly cancelledShare: number;
  readonly unansweredShare: number;
  /** Attempts between two kills; null = none is killed. */
  readonly killEvery: number | null;
}

/** A name belongs to the project that registers it first, and every race has a project of its own. */
function namesOf(projectId: string) {
  return { perCall: `race-per-call.${projectId}`, perSecond: `race-per-second.${projectId}` };
}

async function startInstances(stage: Stage, projectId: string): Promise<JournalFleet> {
  const { perCall, perSecond } = namesOf(projectId);
  const member = { max_concurrency: 64, tags: ['hosted'], minMs: 10, maxMs: 60, failureShare: 0.02 };
  return stage.startFleet(projectId, [
    { ...member, name: perCall, cost_model: { type: 'per_call', rate_usd: 0.03 } },
    { ...member, name: perSecond, cost_model: { type: 'per_second', rate_usd: 0.1 } },
  ]);
}

/** Spread evenly: of every hundred in a row the same number. */
function isOneOf(share: number, at: number): boolean {
  return Math.floor((at + 1) * share) > Math.floor(at * share);
}

function ordersOf(projectId: string, race: Race): readonly CallOrder[] {
  const { perCall, perSecond } = namesOf(projectId);
  return manyOrders(race.calls, (at) => {
    const isUnanswered = isOneOf(race.unansweredShare, at);
    return {
      projectId,
      capability: at % 2 === 0 ? perCall : perSecond,
      timeoutMs: isUnanswered ? 200 : 2_000,
      input: { hang: isUnanswered },
      cancelAfterMs: isOneOf(race.cancelledShare, at + 5) ? 5 + (at % 40) : null,
    };
  });
}

const concurrency = 8;

/** What the router in one place has to do, and after it its successors. */
async function runThrough(
  stage: Stage,
  place: number,
  orders: readonly CallOrder[],
): Promise<readonly CallReport[]> {
  const done = new Map<string, CallReport>();
  for (let left = orders; left.length > 0; ) {
    const router = await stage.router(place);
    for (const report of await router.run(left, concurrency)) done.set(report.key, report);
    left = left.filter(({ key }) => !done.has(key)).map((order) => ({ ...order, isKeyNew: false }));
  }
  return [...done.values()];
}

async function countAttempts(stage: Stage, project_id: string): Promise<number> {
  return (await stage.db('attempt').where({ project_id }).count<{ count: string }[]>())
    .map(({ count }) => Number(count))
    .reduce((sum, count) => sum + count, 0);
}

/** Kills one router after the other as the work continues. @returns how many, once it is stopped */
async function killInTurn(
  stage: Stage,
  projectId: string,
  every: number,
  over: AbortSignal,
): Promise<number> {
  for (let kills = 0; ; kills++) {
    while (!over.aborted && (await countAttempts(stage, projectId)) < (kills + 1) * every) await sleep(20);
    if (over.aborted) return kills;
    await stage.killRouter(kills % stage.places);
  }
}

export async function raceForMoney(stage: Stage, race: Race): Promise<Outcome> {
  const projectId = await stage.aProject(race.limitUsd);
  const fleet = await startInstances(stage, projectId);
  const orders = ordersOf(projectId, race);
  const over = new AbortController();
  const killing = race.killEvery === null ? 0 : killInTurn(stage, projectId, race.killEvery, over.signal);
  const reports = await Promise.all(
    Array.from({ length: stage.places }, (_, place) =>
      runThrough(
        stage,
        place,
        orders.filter((_order, at) => Math.floor(at / 2) % stage.places === place),
      ),
    ),
  );
  over.abort();
  const kills = await killing;
  await stage.settled();
  const account = await readAccount(stage.db, projectId);
  const most = mostAtOnce(await fleet.journal(), fleet.instances[0]?.port ?? 0);
  return { ends: countEnds(reports.flat()), kills, most, account };
}
