/**
 * `npm run cluster`: a cluster of Capstan on this machine until Ctrl-C: Postgres, two Temporal nodes, S3, HAProxy, two
 * servers and two workers (`--servers`, `--workers`: others) from the package of this checkout. All data go away at the
 * end.
 */
import { parseArgs } from 'node:util';
import { stackSignal, untilAborted } from '../src/cli/shell.ts';
import { createPrinter } from '../src/dev/progress.ts';
import { mostProcesses } from './cluster/ports.ts';
import { type Cluster, startCluster } from './cluster/start-cluster.ts';

const { values } = parseArgs({
  options: {
    servers: { type: 'string', default: '2' },
    workers: { type: 'string', default: '2' },
    tarball: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

function readCount(name: 'servers' | 'workers'): number {
  const count = Number(values[name]);
  if (Number.isInteger(count) && count >= 1 && count <= mostProcesses) return count;
  console.error(`--${name} ${values[name]}: allowed are 1 to ${mostProcesses}`);
  process.exit(1);
}

const counts = { servers: readCount('servers'), workers: readCount('workers') };

function describe(cluster: Cluster): string {
  const { apiUrl, key, temporalAddress, namespace, mediaUrl, metricsUrls, parts, folder } = cluster;
  return [
    '',
    'The cluster is ready.',
    `  API        ${apiUrl}  (HAProxy before the servers)`,
    `  Console    ${apiUrl}/ui/`,
    `  Key        ${key}`,
    `  Temporal   ${temporalAddress}  (HAProxy before two nodes), namespace ${namespace}`,
    `  Media      ${mediaUrl}`,
    `  Metrics    ${metricsUrls.join(', ')}`,
    `  Parts      ${parts.join(', ')}`,
    `  Logs       ${folder}/logs`,
    `  CAPSTAN_URL=${apiUrl} CAPSTAN_API_KEY=${key} node bin/capstan.mjs capabilities`,
    'A part that is killed is started again. Ctrl-C ends all.',
    '',
  ].join('\n');
}

const signal = stackSignal();
const printer = createPrinter(values.json ? process.stderr : process.stdout);
try {
  const { tarball } = values;
  const { report } = printer;
  const cluster = await startCluster({
    ...counts,
    report,
    signal,
    ...(tarball === undefined ? {} : { tarball }),
  });
  console.log(values.json ? JSON.stringify(cluster) : describe(cluster));
  await untilAborted(signal);
  await cluster.stop();
} catch (error) {
  if (!signal.aborted) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
} finally {
  printer.close();
}
