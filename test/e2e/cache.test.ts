import type { CacheEntry } from '@capstan/core/contracts/cache';
import type { CostSummary } from '@capstan/core/contracts/money';
import type { Plan } from '@capstan/core/contracts/plan';
import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { type SharedCapstan, shareCapstan } from '../support/shared-capstan.ts';
import { waitFor } from '../support/wait.ts';

let capstan: SharedCapstan;
let instance: Instance;

beforeAll(async () => {
  capstan = await shareCapstan();
  const cost_model = { type: 'per_call', rate_usd: 0.25 };
  instance = await startInstance(capstan, { name: 'louder', cost_model, deterministic: true });
  instance.handle = async ({ input }, response) => {
    const { text, output_path } = input as Record<string, string>;
    await write(output_path ?? '', (await read(text ?? '')).toUpperCase());
    answer(response, 200, { ok: true, output: { output_path } });
  };
  // The spec of an instance is unknown before it was read.
  await waitFor('a result to be kept', async () => {
    await shouted('warm', 'a.txt');
    return (await capstan.request<{ removed: number }>('DELETE', '/v1/cache')).body.removed > 0;
  });
  instance.execs.length = 0;
});
afterAll(async () => {
  await instance?.stop();
});

function send(reference: string, init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${capstan.key}`, 'content-type': 'text/plain' };
  return fetch(`${capstan.url}/v1/media/${reference.slice('media://'.length)}`, { ...init, headers });
}

async function write(reference: string, text: string): Promise<void> {
  const response = await send(reference, { method: 'PUT', body: text });
  if (!response.ok) throw new Error(`${reference}: ${response.status}`);
}

async function read(reference: string): Promise<string> {
  return (await send(reference)).text();
}

const steps = [
  {
    id: 'loud',
    capability: 'louder',
    cache: { ttl: '1h' },
    input: { text: '{{ job.text }}', output_path: 'media://{{ run.job_id }}/loud.txt' },
  },
];

/** A run for a job of its own, whose text has this name. */
async function shouted(text: string, file: string): Promise<Run> {
  const { body: job } = await capstan.request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
  await write(`media://${job.job_id}/${file}`, text);
  const { run_id } = await capstan.submit(steps, { text: `media://${job.job_id}/${file}` });
  return capstan.ended(run_id);
}

test('the second of two equal runs is free, without a call, and its files are at its own paths', async () => {
  const [first, second] = [await shouted('hello', 'a.txt'), await shouted('hello', 'b.txt')];
  expect([first.cost_usd, second.cost_usd, instance.execs.length]).toEqual([0.25, 0, 1]);
  expect(second.output).toEqual({ loud: { output_path: `media://${second.job_id}/loud.txt` } });
  expect(await read(`media://${second.job_id}/loud.txt`)).toBe('HELLO');
  expect(second.steps).toMatchObject([{ state: 'succeeded', cached: 1, attempts: 1 }]);

  const { body: step } = await capstan.request<StepDetail>('GET', `/v1/runs/${second.run_id}/steps/loud`);
  expect(step.attempts).toMatchObject([
    { state: 'cached', cost_usd: 0, cached_from: { run_id: first.run_id, step_id: 'loud', saved_usd: 0.25 } },
  ]);
  const log = await capstan.logOf(second.run_id);
  expect(log.map(({ type }) => type)).toContain('step.cached');
  const { body: costs } = await capstan.request<CostSummary>('GET', '/v1/costs');
  expect(costs.today_saved_usd).toBe(0.25);
});

test.runIf(isLong)(
  'other bytes under the same name, and a result that was removed, are paid for',
  async () => {
    const before = instance.execs.length;
    expect((await shouted('other', 'a.txt')).cost_usd).toBe(0.25);
    const { body: kept } = await capstan.request<{ items: CacheEntry[] }>('GET', '/v1/cache');
    expect(kept.items).toMatchObject([
      { capability: 'louder', step_id: 'loud', cost_usd: 0.25, files: 1 },
      {},
    ]);
    const removed = await capstan.request('DELETE', `/v1/cache?key=${kept.items[0]?.key}`);
    expect(removed.body).toEqual({ removed: 1 });
    expect((await shouted('other', 'a.txt')).cost_usd).toBe(0.25);
    expect(instance.execs.length - before).toBe(2);
  },
);

test.runIf(isLong)('a plan lists cached steps', async () => {
  const { body: job } = await capstan.request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
  await write(`media://${job.job_id}/c.txt`, 'hello');
  const definition = { pipeline: 'test', version: '1', steps };
  const ask = { definition, job: { text: `media://${job.job_id}/c.txt` } };
  const { body: plan } = await capstan.request<Plan>('POST', '/v1/plan', ask);
  expect(plan.steps).toMatchObject([{ cached: 1, cost_usd: { min: 0, expected: 0 } }]);
  expect(plan.steps[0]?.reason).toMatch(/^cached: 0 USD/);
  const equal = [{ ...steps[0], for_each: { items: [1, 2, 3] } }];
  await write(`media://${job.job_id}/c.txt`, 'not seen before');
  const again = { ...ask, definition: { ...definition, steps: equal } };
  const { body: once } = await capstan.request<Plan>('POST', '/v1/plan', again);
  expect(once.steps).toMatchObject([{ items: 3, cached: 2, cost_usd: { min: 0.25, expected: 0.25 } }]);
});

test.runIf(isLong)('equal items make one call', async () => {
  const before = instance.execs.length;
  const { body: job } = await capstan.request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
  const text = `media://${job.job_id}/d.txt`;
  await write(text, 'many');
  const [loud] = steps;
  const items = Array.from({ length: 100 }, (_, at) => at);
  const input = { text, output_path: 'media://{{ run.job_id }}/{{ index }}.txt' };
  const { run_id } = await capstan.submit([{ ...loud, for_each: { items }, input }]);
  const run = await capstan.ended(run_id, 60_000);
  expect([run.state, run.cost_usd, run.steps[0]?.cached]).toEqual(['succeeded', 0.25, 99]);
  expect(instance.execs.length - before).toBe(1);
  expect(await read(`media://${run.job_id}/99.txt`)).toBe('MANY');
});
