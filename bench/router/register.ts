/** Two instances, one free and one with a price and a budget; each takes as many calls at once as there are callers. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Stack } from './stack.ts';
import { freeCapability, paidCapability } from './systems.ts';

async function request(stack: Stack, method: string, path: string, body?: object): Promise<Response> {
  const answer = await fetch(`${stack.capstan}${path}`, {
    method,
    headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

function register(stack: Stack, name: string, endpoint: string, rate_usd: number): Promise<Response> {
  return request(stack, 'POST', '/v1/capabilities', {
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

async function isVetted(stack: Stack, name: string): Promise<boolean> {
  const answer = await request(stack, 'GET', `/v1/capabilities/${name}`);
  const { instances } = (await answer.json()) as { instances: { spec_digest: string | null }[] };
  return instances.every(({ spec_digest }) => spec_digest !== null);
}

export async function registerUpstreams(stack: Stack): Promise<void> {
  await request(stack, 'PUT', '/v1/budgets', { scope: 'project', daily_limit_usd: 1_000 });
  await register(stack, freeCapability, stack.upstream, 0);
  await register(stack, paidCapability, stack.paidUpstream, 0.000_1);
  while (!(await isVetted(stack, freeCapability)) || !(await isVetted(stack, paidCapability)))
    await pause(50);
}
