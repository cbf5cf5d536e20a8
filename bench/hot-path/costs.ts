/**
 * How long cost report and ledger take over HTTP when the ledger is long: 200 requests each, one after the other, as a
 * page of the console asks them.
 */
import { connectDatabase } from '../../src/db/connect.ts';
import { listLedger } from '../../src/db/money/spending.ts';
import { describeServer } from '../../src/dev/service-processes.ts';
import { median, percentile99 } from '../engine/statistics.ts';
import { type Place, say } from '../shared/run-bench.ts';
import type { Database } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';
import type { Bench, Figure } from './figure.ts';
import { fillLedger } from './fill-ledger.ts';

const barMs = 50;
/** Three years. */
const days = 1_000;
const requests = 200;
const warmUps = 20;

/** @returns what `next_cursor` would be after half of the project's days */
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

/** Not before the data are in, for its maintenance would repair what is half filled. @returns the API's address */
async function startServer(place: Place, { databaseUrl }: Database): Promise<string> {
  const temporalAddress = await startTemporalServer(place);
  const port = await place.nextPort();
  const apiUrl = `http://127.0.0.1:${port}`;
  const environment = createEnvironment(place, { databaseUrl, temporalAddress, port });
  await place.supervisor.start(describeServer({ dataDir: place.dataDir, environment }, apiUrl));
  return apiUrl;
}

/** Reads each answer to its end. @returns milliseconds of each request @throws Error when an answer is not 200 */
async function timeRequests(url: string, { apiKey, projectId }: Database): Promise<number[]> {
  const headers = { 'x-api-key': apiKey, 'x-project-id': projectId };
  const times: number[] = [];
  for (let request = 0; request < warmUps + requests; request++) {
    const startedAt = performance.now();
    const answer = await fetch(url, { headers });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${text}`);
    if (request >= warmUps) times.push(performance.now() - startedAt);
  }
  return times;
}

export async function measureCosts({ place, isQuick, addDatabase }: Bench): Promise<Figure[]> {
  const database = await addDatabase('costs');
  const attempts = isQuick ? 500_000 : 5_000_000;
  await fillLedger({ ...database, attempts, days, hasLedger: true }, (share) =>
    say(`filled ${Math.round(share * 100)} %`),
  );
  const apiUrl = await startServer(place, database);
  const ask = async (name: string, path: string, bar: Figure['bar']): Promise<Figure[]> => {
    const times = await timeRequests(`${apiUrl}${path}`, database);
    return [
      { name: `${name}, median`, value: median(times), unit: 'ms', bar: null },
      { name: `${name}, p99`, value: percentile99(times), unit: 'ms', bar },
    ];
  };
  const figures: Figure[] = [];
  for (const period of ['day', 'week', 'month', 'all'])
    figures.push(
      ...(await ask(`costs, ${period}`, `/v1/costs?period=${period}`, { kind: '<=', limit: barMs })),
    );
  figures.push(...(await ask('ledger, first page', '/v1/ledger', null)));
  figures.push(
    ...(await ask('ledger, middle page', `/v1/ledger?cursor=${await findMiddle(database)}`, null)),
  );
  return figures;
}
