/** The tokens of a key where a call does not end with the whole answer, and where an instance reports nonsense. */

import type { KeyCreated } from '@capstan/core/contracts/access';
import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import { answer, type Handler, type Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let model: Instance;
let other: Instance;

const usage = { input_tokens: 50, output_tokens: 150 };
const output = { text: 'hello world', model: 'm', finish_reason: 'stop', usage };
const whole: Handler = (_, response) => answer(response, 200, output);

beforeAll(async () => {
  api = await startTestApi();
  model = await registerInstance(api, { name: 'model.counted' });
  other = await registerInstance(api, { name: 'video.join' });
});
afterAll(async () => {
  await Promise.all([model.stop(), other.stop()]);
  await api.close();
});

const messages = [{ role: 'user', content: 'x' }];

async function aKeyWith(rates: object): Promise<Record<string, string>> {
  const body = { name: 'k', projects: [api.projectId], scopes: ['capability:call'], ...rates };
  const [, { key }] = await readJson<KeyCreated>(api.call('/v1/keys', { body }));
  return { authorization: `Bearer ${key}` };
}

function exec(headers: Record<string, string>, more: object = {}) {
  return execOn(api, 'model.counted', { body: { input: { messages }, ...more }, headers });
}

async function isRefused(headers: Record<string, string>): Promise<boolean> {
  return (await exec(headers)).body.code === 'rate_limited';
}

/** How many calls of the model have ended because their client left. */
async function leftCalls(): Promise<number> {
  const ended = api.db('attempt').where({ capability: 'model.counted' }).whereNotNull('finished_at');
  return (await ended.whereRaw("error ->> 'code' = 'run_cancelled'")).length;
}

/** A part of an answer, and then nothing until the request is closed. */
const half: Handler = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.write(`${JSON.stringify({ delta: { content: 'hello world' } })}\n`);
};
const silence: Handler = () => undefined;
/** All parts, and then an error instead of the last line. */
const broken: Handler = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.write(`${JSON.stringify({ delta: { content: 'hello world' } })}\n`);
  response.end(`${JSON.stringify({ ok: false, error: 'no JSON', status: 500 })}\n`);
};

const streams = [
  ['/openai/v1/chat/completions', { model: 'counted', messages, stream: true }],
  ['/anthropic/v1/messages', { model: 'counted', messages, stream: true, max_tokens: 500 }],
  ['/openai/v1/chat/completions', { model: 'counted', messages, stream: true, n: 1, max_tokens: 200 }],
] as const;

describe('a client that leaves early', () => {
  test.each(streams)('after a part of %s %j has used tokens', async (path, body) => {
    const [headers, left] = [await aKeyWith({ tokens_per_minute: 100 }), await leftCalls()];
    model.handle = half;
    const stop = new AbortController();
    const response = await fetch(`${api.url}${path}`, {
      method: 'POST',
      signal: stop.signal,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes('hello world')) break;
    }
    stop.abort();
    await waitFor('the call to be closed', () => model.execs.at(-1)?.closed);
    model.handle = whole;
    await waitFor('its end', async () => (await leftCalls()) > left);
    expect(await isRefused(headers)).toBe(true);
  });

  test('before anything of the answer has used tokens', async () => {
    const [headers, left] = [await aKeyWith({ tokens_per_minute: 100 }), await leftCalls()];
    model.handle = silence;
    const seen = model.execs.length;
    const stop = new AbortController();
    const asked = fetch(`${api.url}/v1/capabilities/model.counted/exec`, {
      method: 'POST',
      signal: stop.signal,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ input: { messages } }),
    }).catch(() => undefined);
    await waitFor('the call to arrive', () => model.execs.length > seen);
    stop.abort();
    await asked;
    await waitFor('the call to be closed', () => model.execs.at(-1)?.closed);
    model.handle = whole;
    await waitFor('its end', async () => (await leftCalls()) > left);
    expect(await isRefused(headers)).toBe(true);
  });

  test('of a call that is no model has used none', async () => {
    const headers = await aKeyWith({ tokens_per_minute: 100 });
    other.handle = silence;
    const stop = new AbortController();
    const asked = fetch(`${api.url}/v1/capabilities/video.join/exec`, {
      method: 'POST',
      signal: stop.signal,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ input: {} }),
    }).catch(() => undefined);
    await waitFor('the call to arrive', () => other.execs.length > 0);
    stop.abort();
    await asked;
    await waitFor('its end', async () =>
      api.db('attempt').where({ capability: 'video.join' }).whereNotNull('finished_at').first(),
    );
    model.handle = whole;
    expect(await isRefused(headers)).toBe(false);
  });
});

test('an answer that fails after its parts were passed on has used tokens', async () => {
  const headers = await aKeyWith({ tokens_per_minute: 100 });
  model.handle = broken;
  const body = { model: 'counted', messages, stream: true };
  const stream = await api.call('/openai/v1/chat/completions', { headers, body });
  expect(await stream.text()).toContain('"error"');
  model.handle = whole;
  expect(await isRefused(headers)).toBe(true);
});

describe('an absurd usage', () => {
  test.each([1e15, 1e308])('of %s tokens is waited for some minutes at most', async (input_tokens) => {
    const headers = await aKeyWith({ tokens_per_minute: 100 });
    model.handle = (_, response) => answer(response, 200, { ...output, usage: { input_tokens } });
    expect((await exec(headers)).status).toBe(200);
    const { status, headers: refused } = await exec(headers);
    expect(status).toBe(429);
    expect(Number(refused.get('retry-after'))).toBeLessThanOrEqual(301);
  });

  test('counts no more than the call can have used', async () => {
    const headers = await aKeyWith({ tokens_per_minute: 1_000 });
    model.handle = (_, response) => answer(response, 200, { ...output, usage: { output_tokens: 1e15 } });
    const input = { messages, max_output_tokens: 100 };
    for (let made = 0; made < 3; made++) expect((await exec(headers, { input })).status).toBe(200);
  });
});

test('an answer from the cache uses no tokens, and is given when there are none', async () => {
  const headers = await aKeyWith({ tokens_per_minute: 300 });
  model.handle = whole;
  const cached = (ttl_seconds: number) =>
    exec(headers, { input: { messages, seed: 7 }, cache: { ttl_seconds, insist: true } });
  expect((await cached(60)).headers.get('x-capstan-cache')).toBe('miss');
  for (let n = 0; n < 3; n++) expect((await cached(60)).headers.get('x-capstan-cache')).toBe('hit');
  expect((await exec(headers)).status).toBe(200);
  expect((await exec(headers)).status).toBe(429);
  expect((await cached(60)).headers.get('x-capstan-cache')).toBe('hit');
});

describe('keys that a limited key has made', () => {
  async function twoBelow(rates: object) {
    const scopes = ['admin', 'capability:call', 'pipeline:read'];
    const parent = await aKeyWith({ ...rates, scopes });
    const make = async () => {
      const body = { name: 'child', projects: [api.projectId], scopes };
      const [, { key }] = await readJson<KeyCreated>(api.call('/v1/keys', { headers: parent, body }));
      return { authorization: `Bearer ${key}` };
    };
    return { parent, children: [await make(), await make()] as const };
  }

  test('share its tokens', async () => {
    model.handle = whole;
    const { parent, children } = await twoBelow({ tokens_per_minute: 100 });
    expect((await exec(children[0])).status).toBe(200);
    expect(await isRefused(children[1])).toBe(true);
    expect(await isRefused(parent)).toBe(true);
  });

  test('make no more keys below sixteen with rates', async () => {
    const scopes = ['admin'];
    let headers = await aKeyWith({ requests_per_minute: 1_000, scopes });
    const made: number[] = [];
    for (let n = 0; n < 16; n++) {
      const body = { name: 'child', projects: [api.projectId], scopes };
      const [status, { key }] = await readJson<KeyCreated>(api.call('/v1/keys', { headers, body }));
      made.push(status);
      headers = { authorization: `Bearer ${key}` };
    }
    expect(made).toEqual([...Array.from({ length: 15 }, () => 201), 422]);
  });

  test('share its requests', async () => {
    const { parent, children } = await twoBelow({ requests_per_minute: 6 });
    const senders = [parent, ...children];
    const asked: Problem[] = [];
    for (let at = 0; at < 9; at++) {
      const headers = senders[at % 3] ?? {};
      asked.push((await readJson(api.call('/v1/pipelines', { headers })))[1]);
    }
    // The parent has made its two keys with two of the six.
    expect(asked.filter(({ code }) => code === 'rate_limited')).toHaveLength(5);
  });
});
