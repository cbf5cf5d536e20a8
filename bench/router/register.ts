/**
 * Instances for calls and for chats, a free one of each and one with a price and a budget, each for as many calls at
 * once as there are callers; and wrapped models in front of the upstream.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Place } from '../shared/run-bench.ts';
import { canPin, type Stack } from './stack.ts';
import {
  type CapstanServer,
  freeCapability,
  freeModel,
  packagedModels,
  paidCapability,
  paidModel,
} from './systems.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** At once; there are fewer callers. */
const places = 64;

export async function request(
  { url, apiKey }: CapstanServer,
  method: string,
  path: string,
  body?: object,
): Promise<Response> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

function register(
  server: CapstanServer,
  name: string,
  { upstream, rate_usd }: { readonly upstream: string; readonly rate_usd: number },
): Promise<Response> {
  const endpoint = `${upstream}/${name}`;
  return request(server, 'POST', '/v1/capabilities', {
    name,
    version: '1.0.0',
    endpoint,
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_model: { type: rate_usd === 0 ? 'free' : 'per_call', rate_usd },
    tags: ['local'],
    max_concurrency: places,
  });
}

async function isVetted(server: CapstanServer, name: string): Promise<boolean> {
  const answer = await request(server, 'GET', `/v1/capabilities/${name}`);
  const { instances } = (await answer.json()) as { instances: { spec_digest: string | null }[] };
  return instances.some(({ spec_digest }) => spec_digest !== null);
}

/** @returns once the server knows their schemas */
async function registerAll(
  server: CapstanServer,
  upstream: string,
  rates: Readonly<Record<string, number>>,
): Promise<void> {
  await request(server, 'PUT', '/v1/budgets', { scope: 'project', daily_limit_usd: 1_000 });
  for (const [name, rate_usd] of Object.entries(rates)) await register(server, name, { upstream, rate_usd });
  for (const name of Object.keys(rates)) while (!(await isVetted(server, name))) await pause(50);
}

const priceUsd = 0.000_1;

/** Registers them with every server that is measured. */
export async function registerUpstreams({
  capstan,
  beside,
  upstream,
}: Pick<Stack, 'capstan' | 'beside' | 'upstream'>): Promise<void> {
  const rates = {
    [freeCapability]: 0,
    [paidCapability]: priceUsd,
    [freeModel]: 0,
    [paidModel]: priceUsd,
  };
  for (const server of beside === null ? [capstan] : [capstan, beside])
    await registerAll(server, upstream, rates);
}

/** Registers the model with a price alone; the project has a budget of the day. */
export function registerPaidModel(capstan: CapstanServer, upstream: string): Promise<void> {
  return registerAll(capstan, upstream, { [paidModel]: priceUsd });
}

interface PackagedModel {
  /** Of its process. */
  readonly part: string;
  readonly name: string;
  /** The part of the file about the provider. */
  readonly provider: string;
}

/** A model that is asked in the protocol of its client passes requests and answers on as they come. */
function listPackaged(upstream: string): readonly PackagedModel[] {
  const own = `base_url: "${upstream}/v1", model: bench`;
  return [
    {
      part: 'packaged model',
      name: packagedModels.chat,
      provider: `kind: openai
openai: {${own}, endpoint: chat, protocols: [openai.chat, openai.responses]}`,
    },
    {
      part: 'packaged model of messages',
      name: packagedModels.messages,
      provider: `kind: anthropic
anthropic: {${own}, token: "\${BENCH_KEY}"}`,
    },
  ];
}

/** Starts wrapped models, as a user does; they register themselves. */
export async function startPackagedModels(
  { supervisor, dataDir, nextPort }: Place,
  { capstan, upstream }: Stack,
): Promise<void> {
  for (const { part, name, provider } of listPackaged(upstream)) {
    const port = await nextPort();
    const file = join(dataDir, `${name}.yaml`);
    const text = `${provider}
name: ${name}
version: 1.0.0
description: Asks the upstream.
max_concurrency: ${places}
`;
    await writeFile(file, text);
    const command = [process.execPath, join(root, 'bin/capstan.mjs'), 'capability', 'wrap', file];
    // The process that serves is a child of this one, and keeps to the same processor.
    const [program = '', ...args] = canPin ? ['taskset', '-c', '0', ...command] : command;
    await supervisor.start({
      name: part,
      command: program,
      args: [...args, '--state-dir', join(dataDir, `jobs of ${name}`)],
      cwd: dataDir,
      env: {
        ...process.env,
        ROUTER_URL: capstan.url,
        ROUTER_TOKEN: capstan.apiKey,
        PORT: String(port),
        BENCH_KEY: 'none',
      },
      account: null,
      logFile: join(dataDir, 'logs', `${name}.log`),
      stopSignal: 'SIGTERM',
      stopGraceMs: 5_000,
      readyTimeoutMs: 120_000,
      isReady: () => isVetted(capstan, name),
    });
  }
}
