/**
 * Counts rows for gauges. The counts are the same for all processes, so only the maintenance leader reports them, on a
 * scrape. A count that cannot be read within a moment is omitted, so that scrapes are answered while the database is
 * away. A count that another process reports by now is omitted too.
 */

import { ReviewKind } from '@capstan/core/contracts/review';
import { RunState, terminalRunStates } from '@capstan/core/contracts/run';
import { within } from '@capstan/core/pacing';
import { type GaugeName, metricTable } from '@capstan/core/telemetry/metric-table';
import type { Metrics } from '@capstan/core/telemetry/telemetry';
import type { Ctx } from '../../context.ts';
import type { Db } from '../../db/connect.ts';
import {
  countHeldSlots,
  countInstances,
  countOpenReviews,
  countOpenRuns,
  countWaitingSteps,
  listBreakers,
  listLimitedBudgets,
  readLateness,
} from '../../db/gauges.ts';

/** Reports the counts that were read. */
type Tell = (metrics: Metrics) => void;

const openStates = RunState.options.filter((state) => !terminalRunStates.has(state));

async function readWork(db: Db): Promise<Tell> {
  const runs = new Map((await countOpenRuns(db)).map(({ state, count }) => [state, count]));
  const waiting = await countWaitingSteps(db);
  const { delivery_s, horizon_s } = await readLateness(db);
  return ({ replace }) => {
    replace(
      'runs',
      openStates.map((state) => ({ labels: { state }, value: runs.get(state) ?? 0 })),
    );
    const toSample = ({ awaiting: reason, capability, count: value }: (typeof waiting)[number]) => ({
      labels: { reason, capability },
      value,
    });
    replace('waiting_steps', waiting.map(toSample));
    replace('deliveries_oldest_seconds', [{ labels: {}, value: delivery_s }]);
    replace('event_horizon_lag_seconds', [{ labels: {}, value: horizon_s }]);
  };
}

async function readReviews(db: Db): Promise<Tell> {
  const open = await countOpenReviews(db);
  const all = ReviewKind.options.flatMap((kind) => ['open', 'claimed'].map((state) => ({ kind, state })));
  const counts = all.map((labels) => {
    const found = open.find(({ kind, state }) => kind === labels.kind && state === labels.state);
    return { labels, value: found?.count ?? 0 };
  });
  const oldest = ReviewKind.options.map((kind) => {
    const ages = open.filter((row) => row.kind === kind).map(({ oldest_s }) => oldest_s);
    return { labels: { kind }, value: Math.max(0, ...ages) };
  });
  return ({ replace }) => {
    replace('reviews', counts);
    replace('reviews_oldest_seconds', oldest);
  };
}

async function readFleet(db: Db): Promise<Tell> {
  const instances = await countInstances(db);
  const held = await countHeldSlots(db);
  const breakers = await listBreakers(db);
  const up = instances.filter(({ state }) => state === 'up');
  const slots = up.map(({ capability, slots: value }) => ({ labels: { capability }, value }));
  const none = up.map(({ capability }) => ({ labels: { capability }, value: 0 }));
  return ({ replace }) => {
    replace(
      'instances',
      instances.map(({ capability, state, price, count }) => ({
        labels: { capability, state, price },
        value: count,
      })),
    );
    replace('instance_slots', slots);
    const counted = held.map(({ capability, count }) => ({ labels: { capability }, value: count }));
    replace('instance_slots_held', [...counted, ...none]);
    replace(
      'breaker_open',
      breakers.map(({ is_open, ...labels }) => ({ labels, value: is_open ? 1 : 0 })),
    );
  };
}

async function readBudgets(db: Db): Promise<Tell> {
  const budgets = await listLimitedBudgets(db);
  const samplesOf = (field: 'limit_usd' | 'spent_usd' | 'reserved_usd') =>
    budgets.map(({ scope, project_id, [field]: value }) => ({ labels: { scope, project_id }, value }));
  return ({ replace }) => {
    replace('budget_limit_usd', samplesOf('limit_usd'));
    replace('budget_spent_usd', samplesOf('spent_usd'));
    replace('budget_reserved_usd', samplesOf('reserved_usd'));
  };
}

function forget(metrics: Metrics): void {
  for (const [name, row] of Object.entries(metricTable)) {
    if ('of' in row) metrics.replace(name as GaugeName, []);
  }
}

async function readAll(db: Db, withinMs: number): Promise<readonly Tell[]> {
  const parts = [readWork, readReviews, readFleet, readBudgets].map((read) => read(db));
  return within(Promise.all(parts), withinMs, () => {
    throw new Error(`the database has not answered within ${withinMs} ms`);
  });
}

/**
 * @param isHolder whether this process is the maintenance leader
 * @param withinMs how long a scrape waits for the database: Prometheus gives up after 10 s
 */
export function exportSharedGauges(
  { db, telemetry: { metrics } }: Pick<Ctx, 'db' | 'telemetry'>,
  isHolder: () => boolean,
  withinMs = 3_000,
): void {
  metrics.onScrape(async () => {
    metrics.set('maintenance_holder', {}, isHolder() ? 1 : 0);
    if (!isHolder()) return forget(metrics);
    const parts = await readAll(db, withinMs).catch((fault: unknown) => {
      forget(metrics);
      throw fault;
    });
    for (const tell of parts) tell(metrics);
  });
}
