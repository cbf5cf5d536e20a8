/**
 * Runs per second of clusters of several sizes on this machine, and the processor time of a run by part: `npm run bench
 * -- cluster [--runs 300] [--json]`. The machine is the limit, so the figure is the cost of a run, and whether it grows
 * with the number of processes. The steps go by the queue. Exit code 1 when a run does not succeed.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Cluster, startCluster } from '../../scripts/cluster/start-cluster.ts';
import { createApi } from '../../scripts/package/api.ts';
import { packTarball } from '../../scripts/package/pack.ts';
import { createTemporaryFolder } from '../../src/dev/data-folder.ts';
import { createPrinter } from '../../src/dev/progress.ts';
import { readProcessorTime } from '../engine/processor-time.ts';
import { startFleet } from '../growth/fleet.ts';
import { runMany } from '../growth/run-many.ts';
import { type Measured, toTable } from './table.ts';

const sizes = [
  { servers: 1, workers: 1 },
  { servers: 1, workers: 2 },
  { servers: 1, workers: 4 },
  { servers: 2, workers: 1 },
  { servers: 2, workers: 2 },
  { servers: 2, workers: 4 },
] as const;

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '300' }, json: { type: 'boolean', default: false } },
});
const runs = Number(values.runs);

async function measure(cluster: Cluster): Promise<Omit<Measured, 'servers' | 'workers'>> {
  const api = createApi(cluster.apiUrl, cluster.key);
  const fleet = await startFleet(api);
  try {
    await runMany(api, { count: 50, dispatch: 'queued' });
    const before = readProcessorTime(cluster.pids());
    const startedAt = performance.now();
    await runMany(api, { count: runs, dispatch: 'queued' });
    const seconds = (performance.now() - startedAt) / 1_000;
    const spent = [...readProcessorTime(cluster.pids())].map(
      ([part, ms]) => [part, (ms - (before.get(part) ?? 0)) / runs] as const,
    );
    return { runsPerSecond: runs / seconds, processorMs: new Map(spent) };
  } finally {
    await fleet.stop();
  }
}

const folder = createTemporaryFolder('capstan-bench-cluster-');
const tarball = await packTarball(join(folder, 'tarball'));
const printer = createPrinter(process.stderr);
const measured: Measured[] = [];
try {
  for (const size of sizes) {
    const settings = { OPEN_RUNS_PER_PROJECT: '100000' };
    const cluster = await startCluster({ ...size, report: printer.report, tarball, settings });
    try {
      measured.push({ ...size, ...(await measure(cluster)) });
    } finally {
      await cluster.stop();
    }
  }
} finally {
  printer.close();
  await rm(folder, { recursive: true, force: true });
}
console.log(values.json ? JSON.stringify(measured) : toTable(measured));
