/**
 * What `/readyz` answers a proxy: `npm run bench -- readiness [--of FOLDER]`, where FOLDER is another checkout to measure
 * instead. Three parts: every connection of the server waits for a lock; 100 probes a second for ten seconds; the
 * database falls silent. Bars: 200 within 2 s under a full pool, at most two transactions a second for all probes
 * together, 503 at most 3 s after the silence began, since an answer may be a second old.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { describeServer } from '../../src/dev/service-processes.ts';
import { countWaiting } from '../../test/support/locks.ts';
import { startTcpProxy, type TcpProxy } from '../../test/support/tcp-proxy.ts';
import { waitFor } from '../../test/support/wait.ts';
import { percentile99 } from '../engine/statistics.ts';
import { findCheckout, sourceProgram, startOtherServer } from '../shared/other-checkout.ts';
import { type Place, runBench } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';

const { values } = parseArgs({ options: { of: { type: 'string' } } });

/** Connections of a server for its requests. */
const pool = 2;
/** A proxy waits no longer. */
const promptMs = 2_000;
/** An answer is given to all who ask within a second. */
const oldestMs = 1_000;
const probesPerSecond = 100;
const probingSeconds = 10;
const transactionsPerSecond = 2;

interface Side {
  readonly name: string;
  readonly url: string;
  readonly key: string;
  readonly db: Db;
  readonly proxy: TcpProxy;
}

interface Answer {
  readonly status: number | string;
  readonly tookMs: number;
}

async function probe({ url }: Side): Promise<Answer> {
  const beganAt = performance.now();
  const status = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(30_000) }).then(
    async (response) => {
      await response.text();
      return response.status;
    },
    (error: Error) => error.name,
  );
  return { status, tookMs: performance.now() - beganAt };
}

/** Twenty probes while every connection of the server waits for a lock. */
async function probeFullPool(side: Side): Promise<Answer[]> {
  const held = await side.db.transaction();
  await held.raw('lock table schedule in access exclusive mode');
  const headers = { authorization: `Bearer ${side.key}` };
  const requests = Array.from({ length: pool + 1 }, () => fetch(`${side.url}/v1/schedules`, { headers }));
  await waitFor('all connections to wait', async () => (await countWaiting(side.db)) >= pool);
  const answers = await Promise.all(Array.from({ length: 20 }, () => probe(side)));
  await held.rollback();
  for (const request of requests) await (await request).text();
  return answers;
}

async function countTransactions(db: Db): Promise<number> {
  const { rows } = await db.raw<{ rows: { count: string }[] }>(
    `select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()`,
  );
  return Number(rows[0]?.count);
}

/** @returns transactions a second in the database of the server */
async function rateDuring(db: Db, act: () => Promise<void>): Promise<number> {
  const before = await countTransactions(db);
  await act();
  return ((await countTransactions(db)) - before) / probingSeconds;
}

async function probeOften(side: Side): Promise<{ answers: Answer[]; perSecond: number }> {
  const answers: Promise<Answer>[] = [];
  const calm = await rateDuring(side.db, () => sleep(1_000 * probingSeconds));
  const probed = await rateDuring(side.db, async () => {
    const beganAt = performance.now();
    for (let sent = 0; sent < probesPerSecond * probingSeconds; sent++) {
      await sleep(beganAt + (1_000 * sent) / probesPerSecond - performance.now());
      answers.push(probe(side));
    }
    await Promise.all(answers);
  });
  return { answers: await Promise.all(answers), perSecond: Math.max(0, probed - calm) };
}

/** An answer may be as old as a second; the time is from the silence to the first answer that reports it. */
async function probeSilentDatabase(side: Side): Promise<Answer> {
  side.proxy.silence(true);
  const beganAt = performance.now();
  const isOver = () => performance.now() - beganAt > 30_000;
  let { status } = await probe(side);
  while (status === 200 && !isOver()) {
    await sleep(50);
    ({ status } = await probe(side));
  }
  const tookMs = performance.now() - beganAt;
  await side.proxy.cut();
  await side.proxy.restore();
  return { status, tookMs };
}

function describe(name: string, what: string, answers: readonly Answer[]): string {
  const statuses = [...new Set(answers.map(({ status }) => status))].map(
    (status) => `${answers.filter((one) => one.status === status).length} × ${status}`,
  );
  const took = answers.map(({ tookMs }) => tookMs);
  return `${name.padEnd(14)} ${what.padEnd(24)} ${statuses.join(', ').padEnd(20)} p99 ${percentile99(took).toFixed(0)} ms`;
}

function isEvery(answers: readonly Answer[], wanted: number, maxMs = promptMs): boolean {
  return answers.every(({ status, tookMs }) => status === wanted && tookMs <= maxMs);
}

/** @returns whether the bars were met */
async function measure(side: Side): Promise<boolean> {
  const full = await probeFullPool(side);
  console.log(describe(side.name, 'full pool', full));
  const often = await probeOften(side);
  const rate = `, ${often.perSecond.toFixed(1)} transactions a second for them`;
  console.log(describe(side.name, `${probesPerSecond} a second`, often.answers) + rate);
  const silent = [await probeSilentDatabase(side)];
  console.log(describe(side.name, 'silent database', silent));
  return (
    isEvery(full, 200) &&
    isEvery(often.answers, 200) &&
    often.perSecond <= transactionsPerSecond &&
    isEvery(silent, 503, promptMs + oldestMs)
  );
}

/** @returns the address of the same database by a proxy */
async function passBy(databaseUrl: string): Promise<{ proxy: TcpProxy; url: string }> {
  const url = new URL(databaseUrl);
  const proxy = await startTcpProxy(url.host);
  url.host = proxy.address;
  return { proxy, url: url.href };
}

async function startSide(place: Place): Promise<Side> {
  const database = await startDatabase(place);
  const temporalAddress = await startTemporalServer(place);
  const port = await place.nextPort();
  const { proxy, url: databaseUrl } = await passBy(database.databaseUrl);
  const more = { DATABASE_POOL: String(pool), LOG_LEVEL: 'silent', RATE_LIMITS: 'off' };
  const environment = { ...createEnvironment(place, { databaseUrl, temporalAddress, port }), ...more };
  if (values.of === undefined) {
    const url = `http://127.0.0.1:${port}`;
    await place.supervisor.start(describeServer({ dataDir: place.dataDir, environment }, url));
    const db = connectDatabase(database.databaseUrl, 2, 0);
    return { name: 'this checkout', url, key: database.apiKey, db, proxy };
  }
  const checkout = findCheckout(values.of);
  const passed = await passBy(database.server.url);
  const server = { ...database.server, url: passed.url };
  const program = sourceProgram(checkout, 'server');
  const other = await startOtherServer(place, {
    checkout,
    program,
    database: { ...database, server },
    environment,
  });
  const direct = new URL(other.databaseUrl);
  direct.host = new URL(database.databaseUrl).host;
  return {
    name: checkout.name,
    url: other.apiUrl,
    key: other.apiKey,
    db: connectDatabase(direct.href, 2, 0),
    proxy: passed.proxy,
  };
}

await runBench(async (place) => {
  const side = await startSide(place);
  const isMet = await measure(side);
  await side.db.destroy();
  console.log(isMet ? 'pass' : 'FAIL');
  return isMet;
});
