import { readTrace, traceIdOf } from '@capstan/core/telemetry/trace-context';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newId } from '../../src/parts/ids.ts';
import { readResource, startSpanExport } from '../../src/telemetry/span-export.ts';
import { createSpanIds, createTracing, spanIdOf } from '../../src/telemetry/tracing.ts';
import { type SpanCollector, startSpanCollector } from '../support/span-collector.ts';

let collector: SpanCollector;

beforeEach(async () => {
  collector = await startSpanCollector();
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await collector.close();
});

test('spans of the process arrive, and ids follow from their subject', async () => {
  const spans = await startSpanExport({ 'service.name': 'capstan-test', region: 'here' });
  const { start } = createTracing(spans);
  const trace_id = 'c'.repeat(32);
  const root = start({ name: 'run', kind: 'internal', parent: null, key: 'run 1', trace_id, startMs: 1_000 });
  const child = start({ name: 'step', kind: 'client', parent: root.context, attributes: { list: ['a'] } });
  child.end({ error: 'lost' });
  root.end({ attributes: { cost: 0.5 } });
  start({ name: 'never told', kind: 'internal', parent: null });
  await spans.close();
  expect(collector.spans).toMatchObject([
    {
      service: 'capstan-test',
      name: 'step',
      traceId: trace_id,
      parentId: spanIdOf('run 1'),
      kind: 3,
      hasFailed: true,
    },
    { name: 'run', traceId: trace_id, spanId: spanIdOf('run 1'), parentId: '', attributes: { cost: 0.5 } },
  ]);
  expect(collector.spans).toHaveLength(2);
});

test.each([
  ['of level 1', 'congo=t61rcWkgMzE,fw529a3039@dt=FfffAQ'],
  ['of level 2, whose keys the API of OpenTelemetry does not know', '1st=a,foo@bar@baz=2'],
])('a span and those below it carry the state of their trace: %s', async (_, state) => {
  const spans = await startSpanExport({ 'service.name': 'capstan-test' });
  const { start } = createTracing(spans);
  const parent = readTrace(`00-${'c'.repeat(32)}-${'d'.repeat(16)}-03`, state);
  const above = start({ name: 'above', kind: 'server', parent });
  const below = start({ name: 'below', kind: 'client', parent: above.context });
  expect(below.context).toMatchObject({ is_sampled: true, is_random: true, state });
  below.end({});
  above.end({});
  start({ name: 'another trace', kind: 'internal', parent: null }).end({});
  await spans.close();
  expect(collector.spans.map(({ name, state: told }) => [name, told])).toEqual([
    ['below', state],
    ['above', state],
    ['another trace', ''],
  ]);
});

test('a root that is begun twice gets one decision', async () => {
  vi.stubEnv('OTEL_TRACES_SAMPLER', 'parentbased_traceidratio');
  vi.stubEnv('OTEL_TRACES_SAMPLER_ARG', '0.5');
  const spans = await startSpanExport({ 'service.name': 'capstan-test' });
  const { start } = createTracing(spans);
  const decide = (run: string) => {
    const own = { key: `run ${run}`, trace_id: traceIdOf(run) };
    const begin = () => start({ name: 'run', kind: 'internal', parent: null, ...own });
    return [begin().context, begin().context];
  };
  const decisions = Array.from({ length: 100 }, () => decide(newId('run')));
  for (const [one, other] of decisions) expect(one).toEqual(other);
  const sampled = decisions.filter(([one]) => one?.is_sampled === true);
  expect(sampled.length).toBeGreaterThan(10);
  expect(sampled.length).toBeLessThan(90);
  await spans.close();
});

test('random ids are of the right form, all different', () => {
  const ids = createSpanIds();
  ids.prepare({});
  const many = Array.from({ length: 5_000 }, () => ids.generateSpanId());
  expect(new Set(many).size).toBe(many.length);
  for (const id of many) expect(id).toMatch(/^[0-9a-f]{16}$/);
  expect(ids.generateTraceId()).toMatch(/^[0-9a-f]{32}$/);
});

test('attributes of the process are read as OpenTelemetry writes them', () => {
  expect(readResource('region=eu,%ignored,deployment.environment=a%20b,=none')).toEqual({
    region: 'eu',
    'deployment.environment': 'a b',
  });
});
