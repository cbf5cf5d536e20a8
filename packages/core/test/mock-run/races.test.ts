import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import type { PipelineDefinition } from '../../src/contracts/pipeline.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import type { Mocks } from '../../src/mock-run/mocks.ts';
import { runLocally } from '../../src/mock-run/run-locally.ts';

const second = 1_000;

function at(delay: string, more: object = {}) {
  return { replies: [{ delay, ...more }] };
}

async function race(steps: object[], mocks: object, job: JsonObject = {}) {
  const definition = { pipeline: 'p', version: '1', steps } as unknown as PipelineDefinition;
  const run = await runLocally(definition, job, mocks as Mocks);
  return { run, took: run.events.at(-1)?.at_ms, cost: run.steps.map(({ cost_usd }) => cost_usd) };
}

it('takes as long as its first confident answer: the example', async () => {
  const folder = `${import.meta.dirname}/../../../../examples/first-confident`;
  const [definition, mocks] = ['pipeline', 'mocks'].map((name) =>
    parse(readFileSync(`${folder}/${name}.yaml`, 'utf8')),
  );
  const { events } = await runLocally(definition, mocks.job, mocks);
  expect(events.at(-1)).toMatchObject({ type: 'run.succeeded', at_ms: 5 * second });
});

it('takes as long as the second of three branches, of which two are needed', async () => {
  const steps = [
    ...['a', 'b', 'c'].map((id) => ({ id, capability: id })),
    { id: 'two', first: 2, depends_on: ['a', 'b', 'c'], set: {} },
  ];
  const { took } = await race(steps, { capabilities: { a: at('3m'), b: at('2s'), c: at('7s') } });
  expect(took).toBe(7 * second);
});

it('ends a loser in its line for a slot, in its pause before a retry, and its child run', async () => {
  const child = { pipeline: 'child', version: '1', steps: [{ id: 's', capability: 'slow' }] };
  const steps = [
    { id: 'fast', capability: 'fast' },
    { id: 'holder', capability: 'slow' },
    { id: 'queued', capability: 'slow' },
    { id: 'retried', capability: 'broken', retry: { initial: '1h' } },
    { id: 'nested', pipeline: 'child@1', input: {} },
    { id: 'first', first: 1, depends_on: ['fast', 'holder', 'queued', 'retried', 'nested'], set: {} },
  ];
  const definition = { pipeline: 'p', version: '1', steps } as unknown as PipelineDefinition;
  const broken = { replies: [{ error: { status: 500, message: 'broken' } }] };
  const mocks = { capabilities: { fast: at('3s'), slow: { max_concurrency: 1, ...at('1h') }, broken } };
  const {
    outcome,
    steps: ended,
    events,
  } = await runLocally(definition, {}, mocks as unknown as Mocks, {
    pipelines: [child as unknown as PipelineDefinition],
  });
  expect(outcome).toBe('succeeded');
  expect(ended.map(({ state }) => state)).toEqual([
    'succeeded',
    ...['cancelled', 'cancelled', 'cancelled', 'cancelled'],
    'succeeded',
  ]);
  expect(events.at(-1)?.at_ms).toBe(3 * second);
});

it('keeps no place for items that wait for a review', async () => {
  const ask = {
    id: 'ask',
    review: { title: '{{ item }}', timeout: '1h', on_timeout: 'skip' },
    for_each: { items: [1, 2, 3], max_parallel: 1 },
  };
  const { run } = await race([ask], { capabilities: {} });
  const asked = run.events.filter(({ type }) => type === 'step.waiting');
  expect(asked.map(({ at_ms }) => at_ms)).toEqual([0, 0, 0]);
});
