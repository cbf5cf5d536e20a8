/**
 * How long cost report and ledger take when the ledger is long: `npm run bench:costs [-- --rows N]`. Exit code 1 when
 * the bar is missed, when a budget does not match its attempts, or when a part dies.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { connectDatabase } from '../../src/db/connect.ts';
import { findDrift } from '../../src/db/money/budget-drift.ts';
import { listLedger } from '../../src/db/money/ledger.ts';
import { describeServer } from '../../src/dev/service-processes.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { type Database, startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import { fillLedger } from './fill.ts';
import { type Measured, measure } from './measure.ts';

const barMs = 50;
const requests = 200;

/** What `next_cursor` would be after half of the project's days. */
async function findMiddle({ databaseUrl, projectId }: Database): Promise<string> {
  const db = connectDatabase(databaseUrl, 1);
  try {
    const until = new Date(Date.now() - 500 * 86_400_000).toISOString().slice(0, 10);
    const [entry] = await listLedger(db, projectId, { until, after: null, limit: 1 });
    if (entry === undefined) throw new Error(`no entry until ${until}`);
    return Buffer.from(`${entry.day}.${entry.entry_id}`).toString('base64url');
  } finally {
    await db.destroy();
  }
}

/** Maintenance does this every minute. @throws Error when a budget does not match */
async function timeReconciling({ databaseUrl }: Database): Promise<number> {
  const db = connectDatabase(databaseUrl, 1);
  try {
    await findDrift(db);
    const startedAt = performance.now();
    const drift = await findDrift(db);
    if (drift.length > 0) throw new Error(`${drift.length} budgets differ from their attempts`);
    return performance.now() - startedAt;
  } finally {
    await db.destroy();
  }
}

/** Not before the data are in, for its maintenance would repair what is half filled. @returns the API's address */
async function startServer(place: Place, { databaseUrl }: Database): Promise<string> {
  const temporalAddress = await startTemporalServer(place);
  const port = await place.nextPort();
  const apiUrl = `http://127.0.0.1:${port}`;
  const environment = createEnvironment(place, { databaseUrl, temporalAddress, port });
  await place.supervisor.start(describeServer({ dataDir: place.dataDir, environment }, apiUrl));
  return apiUrl;
}

function toRow(...cells: readonly string[]): string {
  return cells.map((cell, at) => (at === 0 ? cell.padEnd(26) : cell.padStart(10))).join('');
}

async function bench(place: Place, rows: number): Promise<boolean> {
  say('starting Postgres');
  const database = await startDatabase(place);
  const startedAt = performance.now();
  await fillLedger({ ...database, rows }, (share) => say(`filled ${Math.round(share * 100)} %`));
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const target = { ...database, apiUrl: await startServer(place, database) };
  const ask = (name: string, path: string): Promise<Measured> => measure(target, { name, path, requests });
  const costs: Measured[] = [];
  for (const period of ['day', 'week', 'month', 'all']) {
    costs.push(await ask(`costs, ${period}`, `/v1/costs?period=${period}`));
  }
  const pages = [
    await ask('ledger, first page', '/v1/ledger'),
    await ask('ledger, middle page', `/v1/ledger?cursor=${await findMiddle(database)}`),
  ];
  const reconciling = await timeReconciling(database);
  const hasPassed = ({ p99 }: Measured): boolean => p99 < barMs;
  const figures = ({ p50, p99 }: Measured): string[] => [p50.toFixed(1), p99.toFixed(1)];
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`;
  console.log(`${new Date().toISOString()}  ${machine}  ${rows} ledger entries, filled in ${seconds} s\n`);
  console.log(toRow('ms', 'p50', 'p99'));
  for (const one of costs) {
    console.log(`${toRow(one.name, ...figures(one))}  < ${barMs}  ${hasPassed(one) ? 'pass' : 'FAIL'}`);
  }
  for (const one of pages) console.log(toRow(one.name, ...figures(one)));
  console.log(toRow('reconciling, once', reconciling.toFixed(1)));
  return costs.every(hasPassed);
}

const { values } = parseArgs({ options: { rows: { type: 'string', default: '10000000' } } });
const rows = Number(values.rows);
if (!Number.isInteger(rows) || rows < 10_000) throw new Error('--rows is a whole number of at least 10000');

await runBench((place) => bench(place, rows));
