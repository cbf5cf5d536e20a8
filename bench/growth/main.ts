/**
 * What a run of three paid steps leaves behind, on a cluster with a real Temporal on Postgres: bytes by table, log of
 * Postgres by database, processor time by part. `npm run bench -- growth [--runs 600] [--tarball FILE] [--json]`.
 * The steps go by the queue, then as they go where nothing is set. Exit code 1 when a run does not succeed.
 */
import { parseArgs } from 'node:util';
import { type Cluster, startCluster } from '../../scripts/cluster/start-cluster.ts';
import { createApi } from '../../scripts/package/api.ts';
import { createPrinter } from '../../src/dev/progress.ts';
import { readProcessorTime } from '../engine/processor-time.ts';
import { openBooks } from './books.ts';
import { startFleet } from './fleet.ts';
import { type Growth, growthBetween } from './growth.ts';
import { runMany } from './run-many.ts';
import { toTable } from './table.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '600' },
    tarball: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const runs = Number(values.runs);

async function measure(cluster: Cluster): Promise<readonly Growth[]> {
  const api = createApi(cluster.apiUrl, cluster.key);
  const fleet = await startFleet(api);
  const books = await openBooks(cluster.databaseUrl);
  const look = async () => ({ ...(await books.read()), processorMs: readProcessorTime(cluster.pids()) });
  try {
    const growths: Growth[] = [];
    await runMany(api, { count: 50, dispatch: 'auto' }); // so that it is known how long the calls take
    for (const dispatch of ['queued', 'auto'] as const) {
      const before = await look();
      await runMany(api, { count: runs, dispatch });
      const after = await look();
      growths.push({
        dispatch,
        ...growthBetween(before, after, runs),
        ...(await books.writtenBy(before, after, runs)),
      });
    }
    return growths;
  } finally {
    await books.close();
    await fleet.stop();
  }
}

const printer = createPrinter(process.stderr);
const { tarball } = values;
const cluster = await startCluster({
  report: printer.report,
  ...(tarball === undefined ? {} : { tarball }),
  settings: { OPEN_RUNS_PER_PROJECT: '100000' },
});
try {
  const growths = await measure(cluster);
  console.log(values.json ? JSON.stringify(growths) : toTable(growths));
} finally {
  await cluster.stop();
  printer.close();
}
