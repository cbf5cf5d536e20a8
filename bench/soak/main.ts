/**
 * A cluster under a steady load for hours: `npm run bench -- soak [--hours 4] [--share 0.6] [--json]`. The load is a
 * share of what the cluster does at most, measured first. Prints how the memory of each part, the connections and the
 * tables have grown, and how long a run took. Exit code 1 when a run fails, a part's memory grows by 5 MB an hour or
 * more once it is warm, or a budget differs from its attempts. The figures so far are printed every ten minutes; SIGINT
 * ends the load early.
 */
import { parseArgs } from 'node:util';
import { type Cluster, startCluster } from '../../scripts/cluster/start-cluster.ts';
import { createApi } from '../../scripts/package/api.ts';
import { connectDatabase } from '../../src/db/connect.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { createPrinter } from '../../src/dev/progress.ts';
import { openBooks } from '../growth/books.ts';
import { startFleet } from '../growth/fleet.ts';
import { runMany } from '../growth/run-many.ts';
import { createSampler, type Sample } from './samples.ts';
import { runSteadily } from './steady-load.ts';
import { describeSoak, findBreaches, type Soak } from './verdict.ts';

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '4' },
    share: { type: 'string', default: '0.6' },
    json: { type: 'boolean', default: false },
  },
});
const hours = Number(values.hours);
const capacityRuns = 300;
/** Enough for a line through them, in hours and in minutes. */
const samplesAtLeast = 60;
/** Who watches reads how it goes, every ten minutes of hours. */
const samplesOfWord = 10;

async function soak(cluster: Cluster, signal: AbortSignal): Promise<Soak> {
  const api = createApi(cluster.apiUrl, cluster.key);
  const fleet = await startFleet(api);
  const books = await openBooks(cluster.databaseUrl);
  const db = connectDatabase(cluster.databaseUrl, 2, 0); // sums over all attempts take as long as they take
  const sampler = createSampler({ cluster, books, db });
  const samples: Sample[] = [];
  try {
    await runMany(api, { count: 50, dispatch: 'queued' });
    const from = performance.now();
    await runMany(api, { count: capacityRuns, dispatch: 'queued' });
    const perSecond = (capacityRuns / ((performance.now() - from) / 1_000)) * Number(values.share);
    const durationMs = hours * 3_600_000;
    const load = runSteadily(api, { perSecond, durationMs, signal });
    const seen = () => ({ ...load.progress(), perSecond, samples });
    const sample = async (): Promise<void> => {
      samples.push(await sampler.take());
      if (samples.length % samplesOfWord === 0)
        console.error(`\n${describeSoak({ ...seen(), drift: null })}`);
    };
    const sampling = setInterval(
      () => void sample().catch(console.error),
      Math.min(60_000, durationMs / samplesAtLeast),
    );
    await load.ended().finally(() => clearInterval(sampling));
    return { ...seen(), drift: await findDrift(db) };
  } finally {
    await db.destroy();
    await books.close();
    await fleet.stop();
  }
}

function showMaps(_name: string, value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value) : value;
}

const early = new AbortController();
process.once('SIGINT', () => early.abort());
const printer = createPrinter(process.stderr);
const settings = { OPEN_RUNS_PER_PROJECT: '100000' };
const cluster = await startCluster({ report: printer.report, settings, signal: early.signal });
try {
  const result = await soak(cluster, early.signal);
  console.log(values.json ? JSON.stringify(result, showMaps) : describeSoak(result));
  const breaches = findBreaches(result);
  for (const breach of breaches) console.error(breach);
  process.exitCode = breaches.length === 0 ? 0 : 1;
} finally {
  await cluster.stop();
  printer.close();
}
process.exit();
