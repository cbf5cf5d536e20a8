/**
 * What is counted in the database: the same for all processes, so only the holder of maintenance tells it, when it is
 * scraped. What cannot be read within a scrape is not told, and neither is what another process tells by now.
 */
import { type GaugeName, metricTable } from '../../core/telemetry/metric-table.ts';
import type { Metrics } from '../../core/telemetry/metrics.ts';
import type { Db } from '../../db/connect.ts';
import {
  countHeldSlots,
  countInstances,
  listBreakers,
  listLimitedBudgets,
} from '../../db/telemetry/standing-fleet.ts';
import {
  countOpenReviews,
  countOpenRuns,
  countWaitingSteps,
  readLateness,
} from '../../db/telemetry/standing-work.ts';

export interface SharedGaugeDependencies {
  readonly db: Db;
  readonly metrics: Metrics;
  /** Whether this process holds maintenance. */
  readonly isHolder: () => boolean;
}

const runStates = ['queued', 'running', 'paused', 'cancelling'];
const reviewKinds = ['escalation', 'skill', 'budget', 'ops', 'step'];

async function refreshWork(db: Db, metrics: Metrics): Promise<void> {
  const runs = new Map<string, number>((await countOpenRuns(db)).map(({ state, count }) => [state, count]));
  metrics.replace(
    'runs',
    runStates.map((state) => ({ labels: { state }, value: runs.get(state) ?? 0 })),
  );
  const waiting = await countWaitingSteps(db);
  metrics.replace(
    'waiting_steps',
    waiting.map(({ awaiting: reason, capability, count }) => ({
      labels: { reason, capability },
      value: count,
    })),
  );
  const { delivery_s, horizon_s } = await readLateness(db);
  metrics.replace('deliveries_oldest_seconds', [{ labels: {}, value: delivery_s }]);
  metrics.replace('event_horizon_lag_seconds', [{ labels: {}, value: horizon_s }]);
}

async function refreshReviews(db: Db, metrics: Metrics): Promise<void> {
  const open = await countOpenReviews(db);
  const all = reviewKinds.flatMap((kind) => ['open', 'claimed'].map((state) => ({ kind, state })));
  metrics.replace(
    'reviews',
    all.map((labels) => {
      const found = open.find(({ kind, state }) => kind === labels.kind && state === labels.state);
      return { labels, value: found?.count ?? 0 };
    }),
  );
  metrics.replace(
    'reviews_oldest_seconds',
    reviewKinds.map((kind) => {
      const ages = open.filter((row) => row.kind === kind).map(({ oldest_s }) => oldest_s);
      return { labels: { kind }, value: Math.max(0, ...ages) };
    }),
  );
}

async function refreshFleet(db: Db, metrics: Metrics): Promise<void> {
  const instances = await countInstances(db);
  metrics.replace(
    'instances',
    instances.map(({ capability, state, price, count }) => ({
      labels: { capability, state, price },
      value: count,
    })),
  );
  const up = instances.filter(({ state }) => state === 'up');
  metrics.replace(
    'instance_slots',
    up.map(({ capability, slots }) => ({ labels: { capability }, value: slots })),
  );
  const held = (await countHeldSlots(db)).map(({ capability, count }) => ({
    labels: { capability },
    value: count,
  }));
  const none = up.map(({ capability }) => ({ labels: { capability }, value: 0 }));
  metrics.replace('instance_slots_held', [...held, ...none]);
  const breakers = await listBreakers(db);
  metrics.replace(
    'breaker_open',
    breakers.map(({ is_open, ...labels }) => ({ labels, value: is_open ? 1 : 0 })),
  );
}

async function refreshBudgets(db: Db, metrics: Metrics): Promise<void> {
  const budgets = await listLimitedBudgets(db);
  const samplesOf = (field: 'limit_usd' | 'spent_usd' | 'reserved_usd') =>
    budgets.map((budget) => ({
      labels: { scope: budget.scope, project_id: budget.project_id },
      value: budget[field],
    }));
  metrics.replace('budget_limit_usd', samplesOf('limit_usd'));
  metrics.replace('budget_spent_usd', samplesOf('spent_usd'));
  metrics.replace('budget_reserved_usd', samplesOf('reserved_usd'));
}

function forget(metrics: Metrics): void {
  for (const [name, row] of Object.entries(metricTable)) {
    if ('of' in row) metrics.replace(name as GaugeName, []);
  }
}

export function exportSharedGauges({ db, metrics, isHolder }: SharedGaugeDependencies): void {
  metrics.onScrape(async () => {
    metrics.set('maintenance_holder', {}, isHolder() ? 1 : 0);
    if (!isHolder()) return forget(metrics);
    const parts = [refreshWork, refreshReviews, refreshFleet, refreshBudgets];
    const ends = await Promise.allSettled(parts.map((part) => part(db, metrics)));
    const fault = ends.find((end) => end.status === 'rejected');
    if (fault === undefined) return;
    forget(metrics);
    throw fault.reason;
  });
}
