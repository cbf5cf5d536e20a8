/** The telemetry of a live stack, read by Prometheus: no alert and no panel looks at a missing series. */

import type { Run } from '@capstan/core/contracts/run';
import { metricTable } from '@capstan/core/telemetry/metric-table';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { alerts, toExpression } from '../../scripts/docs/telemetry/alerts.ts';
import { dashboardRows } from '../../scripts/docs/telemetry/dashboard.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { findPrometheus, startPrometheus } from '../support/prometheus.ts';
import { decide, reviewOf } from '../support/reviews.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
const instances: Instance[] = [];

/** Takes whole rates only, which its schema does not state. */
const picky: Handler = ({ input }, response) =>
  Number.isInteger(input.rate)
    ? answer(response, 200, { ok: true, output: input })
    : answer(response, 422, { ok: false, error: `rate must be a whole number of Hz, not ${input.rate}` });

const model: Handler = (_, response) =>
  answer(response, 200, {
    ok: true,
    output: {
      text: 'no JSON',
      model: 'small-1',
      finish_reason: 'stop',
      usage: { input_tokens: 10, output_tokens: 5 },
    },
  });

beforeAll(async () => {
  capstan = await startCapstan({ METRICS_PORT: '0' });
  const paid = { cost_model: { type: 'per_call', rate_usd: 0.01 } };
  const started = await Promise.all([
    startInstance(capstan, { name: 'free' }),
    startInstance(capstan, { name: 'render', tags: ['gpu'], ...paid }),
    startInstance(capstan, { name: 'resample' }),
    startInstance(capstan, { name: 'flaky' }),
    startInstance(capstan, { name: 'model.fast', tags: ['model', 'local'] }),
    startInstance(capstan, { name: 'render' }), // free, and not what is asked for
  ]);
  instances.push(...started);
  const [, , resample, flaky, fast] = started;
  resample.handle = picky;
  flaky.handle = (_, response) => answer(response, 500, { ok: false, error: 'out of order' });
  fast.handle = model;
});
afterAll(async () => {
  await Promise.all(instances.map((instance) => instance.stop()));
  await capstan?.stop();
});

/** Of server and worker, as they log them. */
function metricsUrls(): string[] {
  const lines = capstan.logs().match(/^\{.*"metrics are served".*$/gm) ?? [];
  return lines.map((line) => String(JSON.parse(line).url));
}

const convert = { id: 'convert', capability: 'resample', input: { rate: '44.1k' } };

/** Every kind of thing that is counted, once. */
async function useAll(): Promise<void> {
  const { request, submit, ended } = capstan;
  const { run_id } = await submit([
    { id: 'a', capability: 'free', input: {} },
    { id: 'b', capability: 'render', tags: ['gpu'], depends_on: ['a'], input: {} },
  ]);
  const broken = await submit([
    { id: 'a', capability: 'flaky', input: {}, retry: { max: 1 }, escalate: { enabled: false } },
  ]);
  await request('POST', '/v1/capabilities/model.fast/exec', {
    input: { messages: [{ role: 'user', content: 'hello' }] },
  });
  expect((await ended(run_id)).state).toBe('succeeded');
  expect((await ended(broken.run_id)).state).toBe('failed');
}

/** A person corrects a step; the resulting skill corrects the next. */
async function learn(): Promise<void> {
  const first = await capstan.submit([convert]);
  const review = await reviewOf(capstan, first.run_id, 'convert');
  await decide(capstan, review, { action: 'edit', input: { rate: 44_100 } });
  await capstan.ended(first.run_id);
  const second = await capstan.ended((await capstan.submit([convert])).run_id);
  expect(second.state).toBe('succeeded');
}

async function waitForCapability(): Promise<void> {
  const { run_id } = await capstan.submit([
    { id: 'late', capability: 'nowhere', wait_for_capability: '10m', input: {} },
  ]);
  await waitFor('the step to wait', async () => {
    const { body } = await capstan.request<Run>('GET', `/v1/runs/${run_id}`);
    return body.steps[0]?.state === 'waiting';
  });
}

async function pageOf(url: string): Promise<string> {
  return (await fetch(url)).text();
}

test('each process has one page, its own metrics and no other server’s, and a worker Temporal’s besides', async () => {
  const urls = await waitFor('both pages', () => (metricsUrls().length === 2 ? metricsUrls() : null));
  const pages = await Promise.all(urls.map(pageOf));
  const worker = pages.find((page) => page.includes('temporal_worker_task_slots_available'));
  const server = pages.find((page) => page !== worker);
  expect(worker).toContain('capstan_maintenance_holder 0');
  expect(worker).not.toMatch(/^capstan_(runs|instances|deliveries_oldest_seconds)\b/m);
  await waitFor('maintenance', async () => {
    const page = await Promise.all(urls.map(pageOf));
    return page.join('').includes('capstan_maintenance_holder 1');
  });
  expect(server).not.toContain('temporal_');
  expect((await fetch(`${capstan.url}/metrics`)).status).toBe(404);
});

test('every expression of alerts and dashboard has a value, and no alert is refused', async (context) => {
  const program = findPrometheus();
  const reason = 'prometheus is not installed; on Debian it is the package prometheus';
  if (program === null) console.warn(`NOT TESTED: expressions against a live stack: ${reason}`);
  context.skip(program === null, reason);
  await capstan.request('PUT', '/v1/budgets', { scope: 'project', daily_limit_usd: 100 });
  await Promise.all([useAll(), learn(), waitForCapability()]);
  const prometheus = await startPrometheus(program as string, metricsUrls());
  try {
    await waitFor('a first look', async () => (await prometheus.query('capstan_runs_total')).length > 0);
    await useAll(); // a rate is seen between two looks
    const expressions = [
      ...Object.entries(metricTable).map(
        ([name, { type }]) => `capstan_${name}${type === 'histogram' ? '_count' : ''}`,
      ),
      ...alerts.map(({ query }) => query),
      ...dashboardRows.flatMap(({ panels }) => panels.flatMap(({ lines }) => lines.map(([expr]) => expr))),
    ];
    let empty: readonly string[] = expressions;
    const lookAgain = async (): Promise<boolean> => {
      const values = await Promise.all(empty.map((expression) => prometheus.query(expression)));
      empty = empty.filter((_, index) => values[index]?.length === 0);
      return empty.length === 0;
    };
    await waitFor('a value of each', lookAgain).catch(() => undefined);
    expect(empty).toEqual([]);
    for (const alert of alerts) await prometheus.query(toExpression(alert));
    expect(await prometheus.query('sum(capstan_maintenance_holder)')).toEqual([1]);
  } finally {
    await prometheus.stop();
  }
});
