import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type ProviderServer, startProviderServer } from '../../../test/support/provider-server.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { call, callInLines, failedChecks, findingsOf, linesOf, startWrapped } from './support.ts';

let server: ProviderServer;
beforeEach(async () => {
  server = await startProviderServer();
  onTestFinished(() => server.close());
});

const measured = (field: string) =>
  `cost: {type: per_call, rate_usd: 1, measured: [{value: "{{ answer.metrics.${field} }}", rate_usd: 0.001}]}\n`;

function aHosted(kind: string, part: string, cost = ''): string {
  return `kind: ${kind}
name: painter
version: 1.0.0
description: Asks a hosted model.
input: {type: object, required: [prompt], properties: {prompt: {type: string}}}
output: {type: object}
max_concurrency: 4
${cost}result: {text: "{{ answer.output.text }}"}
${kind}:
${part}`;
}

const environment = { TOKEN: 'a-secret-token' };

const parts = {
  replicate: () => `  base_url: "${server.url}/v1"\n  token: \${TOKEN}\n  model: owner/name\n  every: 10ms\n`,
  fal: () => `  base_url: "${server.url}"\n  token: \${TOKEN}\n  model: fal-ai/flux/dev\n  every: 10ms\n`,
  cog: () => `  base_url: "${server.url}"\n  every: 10ms\n`,
};

describe.each([
  ['replicate', 'predict_time', 0.0025, 'Bearer a-secret-token'],
  ['fal', 'inference_time', 0.0015, 'Key a-secret-token'],
  ['cog', 'predict_time', 0.0025, undefined],
] as const)('%s', (kind, metric, cost_usd, authorization) => {
  const start = (more = '') =>
    startWrapped(aHosted(kind, parts[kind]() + more, measured(metric)), { environment });

  it('submits, follows and answers, at the measured price, and keeps the contract', async () => {
    const instance = await start();
    const input = { prompt: 'a cat' };
    const text = `made of ${JSON.stringify(input)}`;
    expect(await call(instance, input)).toMatchObject({ status: 200, body: { output: { text, cost_usd } } });
    expect(server.requests[0]?.headers.authorization).toBe(authorization);
    expect(await failedChecks(instance, input)).toEqual([]);
  });

  it('maps the input, when the file asks for it', async () => {
    const instance = await start('  input: {text: "{{ input.prompt }}", steps: 4}\n');
    await call(instance, { prompt: 'a cat' });
    expect(server.jobs[0]?.input).toEqual({ text: 'a cat', steps: 4 });
  });

  it('cancels the job of a caller that leaves', async () => {
    const instance = await start();
    server.onPoll((job) => Object.assign(job, { state: 'running' }));
    const leaving = new AbortController();
    const left = call(instance, { prompt: 'a' }, { signal: leaving.signal }).catch(() => 'left');
    await waitFor('the job', async () => (server.jobs[0]?.polls ?? 0) > 0);
    leaving.abort();
    expect(await left).toBe('left');
    await waitFor('its cancel', async () => server.jobs[0]?.state === 'cancelled');
  });

  it('fails with the error of the job', async () => {
    const instance = await start();
    server.onPoll((job) => Object.assign(job, { state: 'failed', error: 'the prompt is not allowed' }));
    expect(await call(instance, { prompt: 'a' })).toMatchObject({
      status: 422,
      body: { error: expect.stringContaining('the prompt is not allowed') },
    });
  });
});

describe.each(['replicate', 'fal'] as const)('%s', (kind) => {
  it('reports progress from the log, and pays once for two attempts with one key', async () => {
    const instance = await startWrapped(aHosted(kind, parts[kind]()), { environment });
    const lines = await callInLines(instance, { prompt: 'a' });
    expect(lines[0]).toMatchObject({ progress: 0.5 });
    server.onPoll(() => undefined);
    const leaving = new AbortController();
    const lost = call(instance, { prompt: 'b' }, { key: 'k', signal: leaving.signal }).catch(() => 'lost');
    await waitFor('the job', async () => (server.jobs[1]?.polls ?? 0) > 0);
    leaving.abort();
    await lost;
    server.onPoll((job) => Object.assign(job, { state: 'done', output: { text: 'once' } }));
    expect(await call(instance, { prompt: 'b' }, { key: 'k' })).toMatchObject({
      body: { output: { text: 'once' } },
    });
    expect(server.jobs.length).toBe(2);
  });
});

it('replicate names a version or a deployment in its own way', async () => {
  for (const [written, path] of [
    ['version: "owner/name:abc"', '/v1/predictions'],
    ['deployment: me/mine', '/v1/deployments/me/mine/predictions'],
  ] as const) {
    const text = aHosted('replicate', parts.replicate().replace('model: owner/name', written));
    await call(await startWrapped(text, { environment }), { prompt: 'a' });
    expect(server.requests.filter(({ method }) => method === 'POST').at(-1)?.path).toBe(path);
  }
  expect(server.requests[0]?.body).toEqual({ version: 'owner/name:abc', input: { prompt: 'a' } });
});

it('cog asks a running prediction of the same key instead of starting a second', async () => {
  const instance = await startWrapped(aHosted('cog', parts.cog()));
  let isFree = false;
  server.onPoll((job) => {
    job.state = isFree ? 'done' : 'running';
    job.output = { text: 'one' };
  });
  const both = [1, 2].map(() => call(instance, { prompt: 'a' }, { key: 'k' }));
  await waitFor('the second request', async () => server.requests.length >= 3);
  expect(server.jobs.length).toBe(1);
  isFree = true;
  expect((await Promise.all(both))[0]).toMatchObject({ status: 200 });
});

it('refuses a literal token, and a model without its owner', () => {
  const text = aHosted('replicate', '  token: r8_abc\n  model: name\n');
  expect(linesOf(findingsOf(text))).toEqual([
    '10 secret_literal: a secret is not written into the file',
    '11 value_invalid: a model is written owner/name',
  ]);
  const none = aHosted('replicate', `  token: \${TOKEN}\n`);
  expect(linesOf(findingsOf(none, environment))).toEqual([
    '10 value_invalid: one of model, version and deployment is needed',
  ]);
});
