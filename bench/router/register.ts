/** Two instances, one free and one with a price and a budget; each takes as many calls at once as there are callers. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Stack } from './stack.ts';
import { type CapstanServer, freeCapability, paidCapability } from './systems.ts';

async function request(
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
  { endpoint, rate_usd }: { readonly endpoint: string; readonly rate_usd: number },
): Promise<Response> {
  return request(server, 'POST', '/v1/capabilities', {
    name,
    version: '1.0.0',
    endpoint,
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_model: { type: rate_usd === 0 ? 'free' : 'per_call', rate_usd },
    tags: ['local'],
    max_concurrency: 64,
  });
}

async function isVetted(server: CapstanServer, name: string): Promise<boolean> {
  const answer = await request(server, 'GET', `/v1/capabilities/${name}`);
  const { instances } = (await answer.json()) as { instances: { spec_digest: string | null }[] };
  return instances.every(({ spec_digest }) => spec_digest !== null);
}

/** Registers both with every server that is measured. */
export async function registerUpstreams({ capstan, beside, upstream, paidUpstream }: Stack): Promise<void> {
  for (const server of beside === null ? [capstan] : [capstan, beside]) {
    await request(server, 'PUT', '/v1/budgets', { scope: 'project', daily_limit_usd: 1_000 });
    await register(server, freeCapability, { endpoint: upstream, rate_usd: 0 });
    await register(server, paidCapability, { endpoint: paidUpstream, rate_usd: 0.000_1 });
    for (const name of [freeCapability, paidCapability])
      while (!(await isVetted(server, name))) await pause(50);
  }
}
