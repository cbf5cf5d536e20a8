/**
 * Readers of the past beside calls: `npm run bench:readers [-- --attempts 10000000]`. One project has millions of
 * attempts; a key of it reads as much as its rate lets it, twenty requests at once, while another project makes calls.
 * Bars: the calls' p99 is at most twice its calm value, no attempt is lost, `/readyz` answers 200.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { describeServer } from '../../src/dev/service-processes.ts';
import { answer, type Instance, startInstance } from '../../test/support/fleet.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';

const { values } = parseArgs({
  options: { attempts: { type: 'string', default: '10000000' }, calls: { type: 'string', default: '2000' } },
});
const attempts = Number(values.attempts);
const calls = Number(values.calls);

const readers = 20;
/** The bar: of the calm p99. */
const mostTimes = 2;

interface Asking {
  readonly url: string;
  readonly key: string;
}

async function ask({ url, key }: Asking, path: string, body?: object) {
  const response = await fetch(url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as unknown };
}

/** A server with the rates that it has by default. */
async function startServer(place: Place, databaseUrl: string): Promise<string> {
  const temporalAddress = await startTemporalServer(place);
  const port = await place.nextPort();
  const environment = {
    ...createEnvironment(place, { databaseUrl, temporalAddress, port }),
    RATE_LIMITS: 'on',
    LOG_LEVEL: 'silent',
  };
  const url = `http://127.0.0.1:${port}`;
  await place.supervisor.start(describeServer({ dataDir: place.dataDir, environment }, url));
  return url;
}

/** Ids that sort by their time, over the last 80 days. */
async function fill(db: Db, projectId: string): Promise<void> {
  const atOnce = 500_000;
  for (let from = 0; from < attempts; from += atOnce) {
    await db.raw(
      `insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
         lease_until, cost_type, rate_usd, reserved_nano, settled_nano, budget_window, certainty, started_at, finished_at)
       select 'att_' || substr(hex, 1, 8) || '-' || substr(hex, 9) || substr(gen_random_uuid()::text, 14), :projectId,
         'call_' || n, 1, 'render', 'ins_1', 'http://10.0.0.1', 'settled', gen_random_uuid(), at, 'per_call', 0.001,
         1000000, 1000000, at::date, 'exact', at, at
       from (select n, at, lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as hex from (
         select n, now() - interval '80 days' * (1 - n / :attempts::float8) as at
         from generate_series(:from::bigint, :to::bigint - 1) n) n) n`,
      { projectId, attempts, from, to: Math.min(from + atOnce, attempts) },
    );
  }
  await db.raw('analyze attempt');
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

interface Timed {
  readonly p50: number;
  readonly p99: number;
  readonly failed: number;
  readonly unready: number;
}

/** Between two calls: fewer a second than the key may make. */
const pauseMs = 15;

/** One call after the other, `/readyz` beside every hundredth. */
async function timeCalls(caller: Asking): Promise<Timed> {
  const took: number[] = [];
  let failed = 0;
  let unready = 0;
  for (let call = 0; call < calls; call++) {
    const beganAt = performance.now();
    const { status } = await ask(caller, '/v1/capabilities/quick/exec', { input: {} });
    took.push(performance.now() - beganAt);
    if (status !== 200) failed += 1;
    await sleep(pauseMs);
    if (call % 100 === 0 && (await fetch(`${caller.url}/readyz`)).status !== 200) unready += 1;
  }
  took.sort((a, b) => a - b);
  return { p50: quantile(took, 0.5), p99: quantile(took, 0.99), failed, unready };
}

const paths = [
  '/v1/decisions?since=1970-01-01T00:00:00Z&limit=1',
  '/v1/runs?q=zzz',
  '/v1/decisions?since=1970-01-01T00:00:00Z&limit=200',
];

function startReaders(reader: Asking) {
  const statuses = new Map<number, number>();
  let isOver = false;
  const read = async (path: string): Promise<void> => {
    while (!isOver) {
      const { status, headers } = await ask(reader, path);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 429) await sleep(1_000 * Number(headers.get('retry-after')));
    }
  };
  const all = Array.from({ length: readers }, (_, at) => read(paths[at % paths.length] ?? ''));
  return async (): Promise<string> => {
    isOver = true;
    await Promise.all(all);
    return [...statuses].map(([status, times]) => `${times} × ${status}`).join(', ');
  };
}

async function startQuick(caller: Asking): Promise<Instance> {
  const request = async <Body>(_method: string, path: string, body: unknown) => {
    const answered = await ask(caller, path, body as object);
    return { ...answered, body: answered.body as Body };
  };
  const instance = await startInstance({ request }, { name: 'quick' });
  instance.handle = (_, response) => answer(response, 200, { ok: true, output: {} });
  return instance;
}

function show(name: string, { p50, p99, failed, unready }: Timed): string {
  return `${name.padEnd(22)} p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms of ${calls}; ${failed} failed; /readyz not 200: ${unready}`;
}

await runBench(async (place) => {
  const { databaseUrl, apiKey, projectId } = await startDatabase(place);
  const url = await startServer(place, databaseUrl);
  const db = connectDatabase(databaseUrl, 1, 0);
  say(`${attempts} attempts are written`);
  await fill(db, projectId);
  const reader = { url, key: apiKey };
  const { body: project } = await ask(reader, '/v1/projects', { name: 'caller' });
  const projects = [(project as { project_id: string }).project_id];
  const { body: made } = await ask(reader, '/v1/keys', { name: 'caller', scopes: ['admin'], projects });
  const caller = { url, key: (made as { key: string }).key };
  const instance = await startQuick(caller);
  await timeCalls(caller);
  const calm = await timeCalls(caller);
  const stop = startReaders(reader);
  const beside = await timeCalls(caller);
  console.log(
    [show('calm', calm), show(`beside ${readers} readers`, beside), `read: ${await stop()}`].join('\n'),
  );
  const [row] = await db('attempt').where({ state: 'lost' }).count('* as lost');
  const times = beside.p99 / calm.p99;
  const isMet = times <= mostTimes && beside.failed + beside.unready === 0 && Number(row?.lost) === 0;
  console.log(
    `p99 beside them ${times.toFixed(2)} × calm, <= ${mostTimes}; ${row?.lost} attempts lost: ${isMet ? 'pass' : 'FAIL'}`,
  );
  await instance.stop();
  await db.destroy();
  return isMet;
});
