/** A trace as a collector has it: from the request over run, step and attempt into a capability written in Python. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Run } from '@capstan/core/contracts/run';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, type Instance, startInstance } from '../support/fleet.ts';
import { isLong } from '../support/long.ts';
import { decide, reviewOf } from '../support/reviews.ts';
import { type CollectedSpan, type SpanCollector, startSpanCollector } from '../support/span-collector.ts';
import { waitFor } from '../support/wait.ts';

const script = fileURLToPath(new URL('../support/traced_capability.py', import.meta.url));

let collector: SpanCollector;
let capstan: Capstan;
let python: ChildProcess;
let model: Instance;
let resample: Instance;

async function startPython(): Promise<ChildProcess> {
  const child = spawn('python3', [script, capstan.url, capstan.key, collector.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout as Readable });
  await new Promise<void>((resolve, reject) => {
    lines.once('line', () => resolve());
    child.once('exit', (code) => reject(new Error(`the capability ended with ${code}`)));
    child.once('error', reject);
  });
  return child;
}

beforeAll(async () => {
  collector = await startSpanCollector();
  capstan = await startCapstan({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_BSP_SCHEDULE_DELAY: '100',
  });
  [python, model, resample] = await Promise.all([
    startPython(),
    startInstance(capstan, { name: 'model.fast', tags: ['model', 'anthropic'] }),
    startInstance(capstan, { name: 'resample' }),
  ]);
  resample.handle = ({ input }, response) =>
    Number.isInteger(input.rate)
      ? answer(response, 200, { ok: true, output: input })
      : answer(response, 422, { ok: false, error: `rate must be a whole number of Hz, not ${input.rate}` });
  model.handle = (_, response) =>
    answer(response, 200, {
      ok: true,
      output: {
        json: { rate: 44_100 },
        model: 'small-1',
        finish_reason: 'stop',
        usage: { input_tokens: 10, output_tokens: 5 },
      },
    });
});
afterAll(async () => {
  python?.kill();
  await Promise.all([model?.stop(), resample?.stop()]);
  await capstan?.stop();
  await collector?.close();
});

let traces = 0;

/** As a caller with a trace of its own sends it. */
function newTrace(): { traceId: string; spanId: string; header: string } {
  traces += 1;
  const traceId = `${traces}`.padStart(32, 'a');
  const spanId = `${traces}`.padStart(16, 'b');
  return { traceId, spanId, header: `00-${traceId}-${spanId}-01` };
}

async function spanOf(traceId: string, name: string): Promise<CollectedSpan> {
  return waitFor(`a span ${name} of ${traceId}`, () =>
    collector.spans.find((span) => span.traceId === traceId && span.name === name),
  );
}

/** Names from a span up to where its trace began, as far as it was exported. */
function lineOf(span: CollectedSpan): string[] {
  const parent = collector.spans.find(
    ({ traceId, spanId }) => traceId === span.traceId && spanId === span.parentId,
  );
  return [span.name, ...(parent === undefined ? [span.parentId] : lineOf(parent))];
}

async function submit(definition: object, headers: Record<string, string> = {}): Promise<Run> {
  const { status, body } = await capstan.request<Run>('POST', '/v1/runs', { definition, job: {} }, headers);
  expect(status).toBe(202);
  return capstan.ended(body.run_id);
}

const say = { id: 'say', capability: 'traced.python', input: { n: 1 } };

test.each(isLong ? (['queued', 'inline'] as const) : (['queued'] as const))(
  'a %s step hands the trace of the request to Python',
  async (dispatch) => {
    const { traceId, spanId, header } = newTrace();
    const next = { id: 'again', capability: 'traced.python', input: { n: '{{ steps.say.output.n }}' } };
    const steps = [say, next].map((step) => ({ ...step, dispatch }));
    const run = await submit({ pipeline: 'traced', version: dispatch, steps }, { traceparent: header });
    expect(run.state).toBe('succeeded');
    await Promise.all(
      ['POST /v1/runs', 'run traced', 'step say', 'step again'].map((name) => spanOf(traceId, name)),
    );
    await waitFor('both of Python', () => {
      const told = collector.spans.filter((span) => span.traceId === traceId);
      return told.filter(({ name }) => /Python|exec/.test(name)).length === 4;
    });
    const ofPython = collector.spans.filter(
      (span) => span.traceId === traceId && span.name === 'work in Python',
    );
    expect(ofPython.map(lineOf).sort()).toEqual([
      ['work in Python', 'exec traced.python', 'step again', 'run traced', 'POST /v1/runs', spanId],
      ['work in Python', 'exec traced.python', 'step say', 'run traced', 'POST /v1/runs', spanId],
    ]);
    const services = ['exec traced.python', 'step say', 'run traced', 'POST /v1/runs'];
    const told = await Promise.all(services.map((name) => spanOf(traceId, name)));
    expect(told.map(({ service, kind }) => [service, kind])).toEqual([
      ['capstan-worker', 3],
      ['capstan-worker', 1],
      ['capstan-worker', 1],
      ['capstan-server', 2],
    ]);
    expect(told[0]?.attributes).toMatchObject({
      'capstan.run_id': run.run_id,
      'capstan.step_id': 'say',
      'capstan.attempt': 1,
      'capstan.outcome': 'answered',
      'capstan.cost_usd': 0,
    });
    // The run lasts from its request on, and holds its steps.
    expect(told[2]?.durationMs).toBeGreaterThan(told[1]?.durationMs ?? Infinity);
    expect(told[3]?.attributes).toMatchObject({ 'http.route': '/v1/runs', 'http.response.status_code': 202 });
    const once = collector.spans.filter((span) => span.traceId === traceId).map((span) => span.spanId);
    expect(new Set(once).size).toBe(once.length);
  },
);

test.runIf(isLong)('a run without a trace begins one with its own id, with the request in it', async () => {
  const { run_id } = await submit({ pipeline: 'own', version: '1', steps: [say] });
  const traceId = run_id.replace('run_', '').replaceAll('-', '');
  const work = await spanOf(traceId, 'work in Python');
  await Promise.all(['run own', 'step say', 'POST /v1/runs'].map((name) => spanOf(traceId, name)));
  expect(lineOf(work)).toEqual([
    ...['work in Python', 'exec traced.python', 'step say', 'run own', 'POST /v1/runs', ''],
  ]);
});

test('a direct call goes from the request into the capability', async () => {
  const { traceId, spanId, header } = newTrace();
  const tracestate = 'dd=s:2,ot=th:c';
  const { body } = await capstan.request<{ output: { traceparent: string; tracestate: string } }>(
    'POST',
    '/v1/capabilities/traced.python/exec',
    { input: {} },
    { traceparent: header, tracestate },
  );
  await spanOf(traceId, 'POST /v1/capabilities/{name}/exec');
  const attempt = await spanOf(traceId, 'exec traced.python');
  expect(body.output.traceparent).toBe(`00-${traceId}-${attempt.spanId}-01`);
  expect(lineOf(attempt)).toEqual(['exec traced.python', 'POST /v1/capabilities/{name}/exec', spanId]);
  expect([body.output.tracestate, attempt.state]).toEqual([tracestate, tracestate]);
});

test.runIf(isLong)('the run that a step starts, and the items of a list, are in the same trace', async () => {
  const { traceId, header } = newTrace();
  await capstan.request('POST', '/v1/pipelines', { pipeline: 'below', version: '1', steps: [say] });
  const steps = [
    { id: 'sub', pipeline: 'below@1', input: {} },
    { id: 'each', capability: 'traced.python', for_each: { items: [1, 2] }, input: { n: '{{ item }}' } },
  ];
  await submit({ pipeline: 'above', version: '1', steps }, { traceparent: header });
  const work = await waitFor('the step below', () =>
    collector.spans.find((span) => span.traceId === traceId && span.name === 'step say'),
  );
  await Promise.all(
    ['run below', 'step sub', 'run above', 'POST /v1/runs'].map((name) => spanOf(traceId, name)),
  );
  expect(lineOf(work).slice(0, 5)).toEqual([
    'step say',
    'run below',
    'step sub',
    'run above',
    'POST /v1/runs',
  ]);
  const items = await waitFor('both items', () => {
    const told = collector.spans.filter((span) => span.traceId === traceId && span.name === 'step each');
    return told.length === 2 ? told : null;
  });
  expect(items.map(({ attributes }) => attributes['capstan.item']).sort()).toEqual([1, 2]);
});

test('a model that corrects a step is part of it, with what it used and nothing of what it was asked', async () => {
  const { traceId, header } = newTrace();
  const convert = { id: 'convert', capability: 'resample', input: { rate: '44.1k' } };
  const { status, body } = await capstan.request<Run>(
    'POST',
    '/v1/runs',
    { definition: { pipeline: 'corrected', version: '1', steps: [convert] }, job: {} },
    { traceparent: header },
  );
  expect(status).toBe(202);
  const asked = await spanOf(traceId, 'exec model.fast');
  expect(asked.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.request.model': 'model.fast',
    'gen_ai.response.model': 'small-1',
    'gen_ai.usage.input_tokens': 10,
    'gen_ai.usage.output_tokens': 5,
    'gen_ai.response.finish_reasons': ['stop'],
    'capstan.cost_usd': 0,
  });
  expect(JSON.stringify(asked.attributes)).not.toContain('44.1k');
  const end = await waitFor('the end of the step, or its review', async () => {
    const { body: run } = await capstan.request<Run>('GET', `/v1/runs/${body.run_id}`);
    return run.finished_at !== null || run.steps[0]?.state === 'in_review' ? run : null;
  });
  if (end.finished_at === null) {
    await decide(capstan, await reviewOf(capstan, body.run_id, 'convert'), {
      action: 'edit',
      input: { rate: 44_100 },
    });
  }
  expect((await capstan.ended(body.run_id)).state).toBe('succeeded');
  await spanOf(traceId, 'step convert');
  await spanOf(traceId, 'run corrected');
  expect(lineOf(asked).slice(0, 3)).toEqual(['exec model.fast', 'step convert', 'run corrected']);
  const steps = collector.spans.filter((span) => span.traceId === traceId && span.name === 'step convert');
  expect(steps).toHaveLength(1);
  const failed = collector.spans.find((span) => span.traceId === traceId && span.hasFailed);
  expect(failed).toMatchObject({ name: 'exec resample', attributes: { 'error.type': 'rejected' } });
});

test.runIf(isLong)('a trace that its caller does not record is handed on and exported nowhere', async () => {
  const { traceId, header } = newTrace();
  const unsampled = header.replace(/01$/, '00');
  const run = await submit({ pipeline: 'quiet', version: '1', steps: [say] }, { traceparent: unsampled });
  const { traceparent } = (run.output as { say: { traceparent: string } }).say;
  expect(traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`));
  await submit({ pipeline: 'after', version: '1', steps: [say] }).then(({ run_id }) =>
    spanOf(run_id.replace('run_', '').replaceAll('-', ''), 'run after'),
  );
  const told = collector.spans.filter((span) => span.traceId === traceId && span.service !== 'traced.python');
  expect(told).toEqual([]);
});

test('lines of the log name their trace', async () => {
  const { traceId, header } = newTrace();
  await capstan.request('GET', '/v1/runs', undefined, { traceparent: header });
  const line = await waitFor('the line', () =>
    capstan
      .logs()
      .split('\n')
      .find((text) => text.includes(traceId)),
  );
  expect(JSON.parse(line)).toMatchObject({ msg: 'request', trace_id: traceId, route: '/v1/runs' });
});
