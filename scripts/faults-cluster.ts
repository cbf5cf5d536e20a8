/**
 * `npm run faults:cluster`: runs of three paid steps are submitted through HAProxy while a server, a worker, a Temporal
 * node and the S3 server are killed in turn; then Postgres is restarted under what is still under way. Exit code 1 when
 * a submission failed for a client that tries once more, a run is wrong, a charge is, or money stays reserved.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { stackSignal } from '../src/cli/client/stack-signal.ts';
import { connectDatabase } from '../src/db/connect.ts';
import { createPrinter } from '../src/dev/printer.ts';
import { type Cluster, startCluster } from './cluster/start-cluster.ts';
import { killInTurn } from './faults/kill-in-turn.ts';
import { startPaidFleet } from './faults/paid-fleet.ts';
import { type Submissions, submitAll } from './faults/submissions.ts';
import { judge } from './faults/verdict.ts';
import { createApi } from './package/api.ts';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000' },
    pace: { type: 'string', default: '8' },
    tarball: { type: 'string' },
  },
});
const count = Number(values.runs);
/** The last ones, which are under way when Postgres goes. */
const burst = Math.min(50, count);
const inTurn = ['server-1', 'worker-1', 'temporal-1', 's3', 'server-2', 'worker-2', 'temporal-2'];
const patienceMs = 300_000;

type Database = ReturnType<typeof connectDatabase>;

async function countOpen(db: Database): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ open: number }] }>(
    'select count(*)::int as open from run where finished_at is null',
  );
  return rows[0].open;
}

/** @throws Error when some are open for longer than anything may take */
async function awaitEnds(db: Database): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (let open = await countOpen(db); open > 0; open = await countOpen(db)) {
    if (performance.now() > deadline) throw new Error(`${open} runs are open after ${patienceMs / 1000} s`);
    await sleep(500);
  }
}

async function restartPostgres(cluster: Cluster): Promise<void> {
  const before = connectDatabase(cluster.databaseUrl, 1);
  const open = await countOpen(before).finally(() => before.destroy());
  await cluster.kill('postgres', 'SIGINT');
  await cluster.ready('postgres');
  console.log(`    restarted postgres under ${open} runs`);
  for (const part of cluster.parts) await cluster.ready(part);
}

function addUp(first: Submissions, second: Submissions): Submissions {
  return {
    runs: new Map([...first.runs, ...second.runs]),
    files: new Map([...first.files, ...second.files]),
    failed: [...first.failed, ...second.failed],
    retried: [...first.retried, ...second.retried],
  };
}

/** @returns what does not hold */
async function play(cluster: Cluster): Promise<readonly string[]> {
  const api = createApi(cluster.apiUrl, cluster.key);
  const fleet = await startPaidFleet(api);
  let isOver = false;
  const kills = killInTurn(cluster, inTurn, () => isOver);
  const steady = await submitAll(api, count - burst, Number(values.pace));
  isOver = true;
  const killed = await kills;
  const last = await submitAll(api, burst, burst);
  await restartPostgres(cluster);
  const db = connectDatabase(cluster.databaseUrl, 2, 60_000);
  try {
    await awaitEnds(db);
    const { runs, files, failed, retried } = addUp(steady, last);
    const verdict = await judge({ api, db, runs, files, calls: fleet.calls(), stepsPerRun: 3 });
    console.log(`    ${killed.length} kills, ${retried.length} submissions tried twice`);
    for (const reason of new Set(retried)) console.log(`      ${reason}`);
    for (const line of [`${failed.length} of ${count} submissions failed`, ...verdict.lines])
      console.log(line);
    return [...failed.map((reason) => `a submission failed twice: ${reason}`), ...verdict.breaches];
  } finally {
    await db.destroy();
    await fleet.stop();
  }
}

const signal = stackSignal();
const printer = createPrinter(process.stdout);
let cluster: Cluster | undefined;
try {
  const { tarball } = values;
  cluster = await startCluster({
    signal,
    report: printer.report,
    ...(tarball === undefined ? {} : { tarball }),
    settings: { OPEN_RUNS_PER_PROJECT: '100000' },
  });
  const breaches = await play(cluster);
  for (const breach of breaches) console.error(breach);
  console.log(breaches.length === 0 ? 'all of it held' : `${breaches.length} things did not hold`);
  process.exitCode = breaches.length === 0 ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await cluster?.stop();
  printer.close();
}
process.exit();
