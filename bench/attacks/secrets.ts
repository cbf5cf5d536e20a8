/**
 * That an answer with many secrets holds no worker: `npm run bench -- attacks` plays it last. One project's step names forty
 * secrets of 64 lines and is answered with 4 MiB; another project's step works for three seconds, paid by the second.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeServer, describeWorker } from '../../src/dev/service-processes.ts';
import { waitFor } from '../../test/support/wait.ts';
import type { Place } from '../shared/run-bench.ts';
import { startDatabase } from '../shared/start-database.ts';
import { createEnvironment, startTemporalServer } from '../shared/start-temporal.ts';

const worksMs = 3_000;
const rateUsd = 0.001;
/** What the clock of a busy machine may add. */
const mostUsd = 1.3 * rateUsd * (worksMs / 1_000);
const secrets = 40;

type Ask = <Body>(method: string, path: string, body: unknown, wait?: boolean) => Promise<Body>;

async function startStack(place: Place): Promise<Ask> {
  const { databaseUrl, apiKey } = await startDatabase(place);
  const temporalAddress = await startTemporalServer(place);
  const port = await place.nextPort();
  const environment = {
    ...createEnvironment(place, { databaseUrl, temporalAddress, port }),
    LOG_LEVEL: 'silent',
    LEASE_MS: '5000',
    PAYLOAD_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  };
  const url = `http://127.0.0.1:${port}`;
  await place.supervisor.start(describeServer({ dataDir: place.dataDir, environment }, url));
  await place.supervisor.start(describeWorker({ dataDir: place.dataDir, environment }));
  return async (method, path, body, wait = false) => {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    const answer = await fetch(url + path, {
      method,
      headers: wait ? { ...headers, prefer: 'wait=60' } : headers,
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${path} was answered with ${answer.status}: ${await answer.text()}`);
    return answer.json() as never;
  };
}

interface Service {
  readonly name: string;
  readonly cost: { readonly type: string; readonly rate_usd: number };
  readonly exec: () => Promise<object>;
}

/** @returns how often it was called */
async function register(ask: Ask, { name, cost, exec }: Service): Promise<() => number> {
  let calls = 0;
  const any = { type: 'object' };
  const spec = { name, version: '1.0.0', description: name, input: any, output: any, cost_model: cost };
  const answer: RequestListener = async ({ url = '' }, response) => {
    if (url === '/exec') calls += 1;
    const health = { status: 'ok', name, version: '1.0.0', uptime_ms: 1_000 };
    const body = url === '/exec' ? await exec() : url === '/spec' ? spec : health;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
  const request = { name, version: '1.0.0', ...urls, cost_model: cost, tags: [], max_concurrency: 4 };
  await ask('POST', '/v1/capabilities', request);
  await waitFor('the specification to be read', async () => {
    const reply = await ask('POST', '/v1/route', { capability: name }).catch(() => null);
    return reply !== null;
  });
  return () => calls;
}

function step(capability: string, input: object) {
  const definition = { pipeline: capability, version: '1', steps: [{ id: 'a', capability, input }] };
  return { definition, job: {} };
}

interface Run {
  readonly state: string;
  readonly cost_usd: number;
}

export async function playSecrets(place: Place): Promise<boolean> {
  const ask = await startStack(place);
  const names = Array.from({ length: secrets }, (_, at) => `s${at}`);
  for (const name of names) {
    const lines = Array.from({ length: 64 }, (_, at) => `l${name}-${at}-`.padEnd(17, 'k'));
    await ask('PUT', `/v1/secrets/${name}`, { value: lines.join('\n'), capabilities: ['big'] });
  }
  const text = 'lkkkkkk '.repeat(500_000);
  await register(ask, { name: 'big', cost: { type: 'free', rate_usd: 0 }, exec: async () => ({ text }) });
  const cost = { type: 'per_second', rate_usd: rateUsd };
  const exec = () => sleep(worksMs, { done: true });
  const calls = await register(ask, { name: 'paid', cost, exec });
  const paid = ask<Run>('POST', '/v1/runs', step('paid', {}), true);
  await waitFor('the paid call', () => calls() > 0);
  const input = Object.fromEntries(names.map((name) => [name, `{{ secrets.${name} }}`]));
  const beganAt = performance.now();
  const attack = await ask<Run>('POST', '/v1/runs', step('big', input), true);
  const tookMs = performance.now() - beganAt;
  const { state, cost_usd } = await paid;
  const isFair = state === 'succeeded' && calls() === 1 && cost_usd <= mostUsd;
  console.log(`an answer of 4 MiB to ${secrets} secrets: ${attack.state} after ${tookMs.toFixed(0)} ms`);
  console.log(
    `a call of 3 s beside it: ${calls()} call, ${cost_usd} USD, <= ${mostUsd}: ${isFair ? 'pass' : 'FAIL'}`,
  );
  return isFair;
}
