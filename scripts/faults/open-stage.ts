/** A cluster for faults: behind a proxy before Postgres, with a budget, and with every commit watched. */
import type { Report } from '../../src/dev/progress.ts';
import { watchCommits } from '../../test/support/commit-watch.ts';
import { startTcpProxy, type TcpProxy } from '../../test/support/tcp-proxy.ts';
import { startCluster } from '../cluster/start-cluster.ts';
import { createApi } from '../package/api.ts';
import { type Stage, withDatabase } from './play.ts';

export interface StageOptions {
  readonly isLong: boolean;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly tarball?: string | undefined;
}

/** In short, what is lost is noticed sooner: most of the time would be spent on waiting for it. */
const shortMs = 10_000;
const defaultMs = 30_000;
const dailyLimitUsd = 1_000;

/** Resolves when all of it is ready. */
export async function openStage({ isLong, tarball, ...options }: StageOptions): Promise<Stage> {
  const noticedMs = isLong ? defaultMs : shortMs;
  let postgres: TcpProxy | undefined;
  const cluster = await startCluster({
    ...options,
    ...(tarball === undefined ? {} : { tarball }),
    settings: {
      OPEN_RUNS_PER_PROJECT: '100000',
      INSTANCES_PER_PROJECT: '2000',
      HEARTBEAT_TIMEOUT_MS: String(noticedMs),
      LEASE_MS: String(noticedMs),
    },
    beforePostgres: async (address) => {
      postgres = await startTcpProxy(address);
      return postgres.address;
    },
  });
  if (postgres === undefined) throw new Error('nothing stands before Postgres');
  const api = createApi(cluster.apiUrl, cluster.key);
  const timing = { isLong, heartbeatTimeoutMs: noticedMs, leaseMs: noticedMs };
  const stage = { cluster, api, postgres, ...timing };
  await withDatabase(stage, watchCommits);
  const budget = { scope: 'project', daily_limit_usd: dailyLimitUsd };
  const { status } = await api.request('PUT', '/v1/budgets', budget);
  if (status !== 200) throw new Error(`the budget was answered ${status}`);
  return stage;
}
