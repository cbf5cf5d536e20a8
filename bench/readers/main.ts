/**
 * Readers of the past beside calls: `npm run bench -- readers [--attempts 10000000 --rounds 3]`. One project has millions
 * of attempts; a key of it reads as much as its rate lets it, twenty requests at once, while another project makes calls.
 * Each round times calls without readers and then beside them, so that a slow minute of the machine meets both.
 * Bars: the calls' p99 is at most twice its calm value, no attempt is lost, `/readyz` answers 200.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { connectDatabase, type Db } from '../../src/db/connect.ts';
import { describeServer } from '../../src/dev/service-processes.ts';
import { answer, type Instance, startInstance } from '../../test/support/fleet.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';

const { values } = parseArgs({
  options: {
    attempts: { type: 'string', default: '10000000' },
    calls: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '3' },
    candidates: { type: 'string', default: '5' },
  },
});
const attempts = Number(values.attempts);
const calls = Number(values.calls);
const rounds = Number(values.rounds);
/** Instances that a decision names; it names twenty at most. */
const candidates = Number(values.candidates);

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
}

/** As many as a list shows, and the next page. */
const listedChoices = 400;

/** The newest attempts have a choice, as that of a call that was made; those before are older than choices are kept. */
async function fillChoices(db: Db, projectId: string): Promise<void> {
  const made = await db('attempt_choice').whereNotNull('inputs').first('decision', 'inputs');
  const { instances, ...inputs } = made.inputs;
  const shown = Array.from({ length: candidates }, () => instances[0]);
  await db.raw(
    `insert into attempt_choice (attempt_id, decision, inputs)
     select attempt_id, cast(:decision as json), cast(:inputs as json) from attempt where project_id = :projectId order by attempt_id desc limit :listedChoices`,
    {
      projectId,
      listedChoices,
      decision: JSON.stringify(made.decision),
      inputs: JSON.stringify({ ...inputs, instances: shown }),
    },
  );
}

/** What the database would do by itself a minute later, in the middle of what is timed. */
async function settle(db: Db): Promise<void> {
  await db.raw('vacuum (analyze) attempt');
  await db.raw('vacuum (analyze) attempt_choice');
  await db.raw('checkpoint');
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

interface Timed {
  readonly tookMs: readonly number[];
  readonly failed: number;
  readonly unready: number;
}

/** Between two calls: fewer a second than the key may make. */
const pauseMs = 15;

/** One call after the other, `/readyz` beside every hundredth. */
async function timeCalls(caller: Asking): Promise<Timed> {
  const tookMs: number[] = [];
  let failed = 0;
  let unready = 0;
  for (let call = 0; call < calls; call++) {
    const beganAt = performance.now();
    const { status } = await ask(caller, '/v1/capabilities/quick/exec', { input: {} });
    tookMs.push(performance.now() - beganAt);
    if (status !== 200) failed += 1;
    await sleep(pauseMs);
    if (call % 100 === 0 && (await fetch(`${caller.url}/readyz`)).status !== 200) unready += 1;
  }
  return { tookMs, failed, unready };
}

const paths = [
  '/v1/decisions?since=1970-01-01T00:00:00Z&limit=1',
  '/v1/runs?q=zzz',
  '/v1/decisions?since=1970-01-01T00:00:00Z&limit=200',
];

interface Read {
  readonly statuses: ReadonlyMap<number, number>;
  /** Of all answers as they came, packed, without their heads. */
  readonly bytes: number;
}

/** @returns ends them, and gives the answers that they have read */
function startReaders({ url, key }: Asking): () => Promise<Read> {
  const workerData = { url, key, paths, readers };
  const thread = new Worker(new URL('readers-thread.mjs', import.meta.url), { workerData, execArgv: [] });
  return async () => {
    const told = once(thread, 'message');
    thread.postMessage('stop');
    const [read] = (await told) as [Read];
    await thread.terminate();
    return read;
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

interface Figures {
  readonly p50: number;
  readonly p99: number;
  readonly failed: number;
  readonly unready: number;
}

/** Of several rounds as one: the worst hundredth of one round is some twenty calls. */
function sumUp(timed: readonly Timed[]): Figures {
  const sorted = timed.flatMap(({ tookMs }) => tookMs).sort((a, b) => a - b);
  const sum = (of: 'failed' | 'unready') => timed.reduce((all, one) => all + one[of], 0);
  return {
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    failed: sum('failed'),
    unready: sum('unready'),
  };
}

function show(name: string, { p50, p99, failed, unready }: Figures): string {
  return `${name.padEnd(22)} p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms; ${failed} failed; /readyz not 200: ${unready}`;
}

function showRead({ statuses, bytes }: Read): string {
  const given = [...statuses].map(([status, times]) => `${times} × ${status}`).join(', ');
  return `read: ${given}, ${(bytes / 1_048_576).toFixed(0)} MiB`;
}

async function playRounds(reader: Asking, caller: Asking) {
  const calm: Timed[] = [];
  const beside: Timed[] = [];
  await timeCalls(caller);
  for (let round = 1; round <= rounds; round++) {
    calm.push(await timeCalls(caller));
    const stop = startReaders(reader);
    beside.push(await timeCalls(caller));
    const read = await stop();
    const [quiet, busy] = [calm, beside].map((timed) => sumUp(timed.slice(-1)));
    say(`${round}: p99 ${quiet?.p99.toFixed(1)} ms, ${busy?.p99.toFixed(1)} ms; ${showRead(read)}`);
  }
  return { calm: sumUp(calm), beside: sumUp(beside) };
}

await runBench(async (place) => {
  const { databaseUrl, apiKey, projectId } = await startDatabase(place);
  const url = await startServer(place, databaseUrl);
  const db = connectDatabase(databaseUrl, 1, 0);
  const reader = { url, key: apiKey };
  const { body: project } = await ask(reader, '/v1/projects', { name: 'caller' });
  const projects = [(project as { project_id: string }).project_id];
  const { body: made } = await ask(reader, '/v1/keys', { name: 'caller', scopes: ['admin'], projects });
  const caller = { url, key: (made as { key: string }).key };
  const instance = await startQuick(caller);
  await ask(caller, '/v1/capabilities/quick/exec', { input: {} });
  say(`${attempts} attempts are written`);
  await fill(db, projectId);
  await fillChoices(db, projectId);
  await settle(db);
  const { calm, beside } = await playRounds(reader, caller);
  const [row] = await db('attempt').where({ state: 'lost' }).count('* as lost');
  const times = beside.p99 / calm.p99;
  const isMet = times <= mostTimes && beside.failed + beside.unready === 0 && Number(row?.lost) === 0;
  console.log(
    [
      show('calm', calm),
      show(`beside ${readers} readers`, beside),
      `p99 beside them ${times.toFixed(2)} × calm, <= ${mostTimes}; ${row?.lost} attempts lost: ${isMet ? 'pass' : 'FAIL'}`,
    ].join('\n'),
  );
  await instance.stop();
  await db.destroy();
  return isMet;
});
