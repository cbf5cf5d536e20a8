import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelReply } from '../../../test/support/model-server.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { modelKey as key, priced } from '../../../test/support/wrapped-models.ts';
import { exec, post } from '../../capability/test/support/capabilities.ts';
import { causeOf } from '../src/exchange/provider-failure.ts';
import { type ModelLevel, schema, startModelLevel, user } from './model-level.ts';

let level: ModelLevel;
const ask: ModelLevel['ask'] = (...call) => level.ask(...call);

beforeAll(async () => {
  level = await startModelLevel();
});
afterAll(() => level.close());

describe('a provider that fails', () => {
  it.each<[ModelReply, number, RegExp]>([
    [
      { status: 401, body: { error: { message: `bad key ${key}` } } },
      502,
      /^POST http\S+\/chat\/completions was answered 401: .*bad key \*\*\*/,
    ],
    [{ status: 404, body: `{"error":"no model 'small'"}` }, 502, /was answered 404: .*no model 'small'/],
    [
      { status: 502, body: `<html>${'x'.repeat(500)}`, headers: { 'content-type': 'text/html' } },
      502,
      /was answered 502: <html>x{500}$/,
    ],
    [
      { status: 429, body: { error: { message: 'pay', code: 'insufficient_quota' } } },
      502,
      /was answered 429: .*insufficient_quota/,
    ],
    [{ status: 503 }, 503, /was answered 503/],
    [{ status: 500 }, 502, /was answered 500: .*as the test asked/],
    [{ status: 400, body: { error: { message: 'context too long' } } }, 422, /was answered 400: .*too long/],
    [{ garbage: 'data: {"a": <html>\n\n' }, 502, /no object of JSON/],
    [
      { garbage: '<html>not here</html>', contentType: 'text/html; charset=utf-8' },
      502,
      /^expected an answer of a model, got status 200, text\/html; charset=utf-8: "<html>not here<\/html>"$/,
    ],
    [
      { garbage: `{"result":"${key}${'x'.repeat(500)}"}`, contentType: 'application/json' },
      502,
      /^expected .* got status 200, application\/json: "\{\\"result\\":\\"\*\*\*x+…"$/,
    ],
    [{ garbage: '' }, 502, /^expected .* got status 200, text\/event-stream: nothing$/],
    [
      { garbage: 'Bad gateway', contentType: 'text/plain' },
      502,
      /got status 200, text\/plain: "Bad gateway"$/,
    ],
    [
      { garbage: '{"error":{"message":"no memory"}}', contentType: 'application/json' },
      502,
      /^the provider reports no memory$/,
    ],
    [{ garbage: '{"choices": [', contentType: 'application/json' }, 502, /^expected an answer/],
    [
      { garbage: `data: {"error":{"message":"crashed with ${key}"}}\n\n` },
      502,
      /^the provider reports crashed .*\*\*\*/,
    ],
    [{ text: 'half an ans', finish: null }, 502, /^the answer ended before it was complete$/],
    [{ cut: 'half an answer' }, 502, /^the answer (broke off|ended before)/],
  ])('by %j is answered %i, without the key', async (reply, status, error) => {
    const answer = await ask(user('a'), reply);
    expect([answer.status, answer.body]).toMatchObject([
      status,
      { ok: false, error: expect.stringMatching(error) },
    ]);
    expect(JSON.stringify([answer.body, level.lines])).not.toContain(key);
  });

  it.each<[ModelReply, RegExp]>([
    [
      { garbage: '<html>not here</html>', contentType: 'text/html' },
      /^expected an answer of a model, got status 200, text\/html: "<html>not here<\/html>"$/,
    ],
    [
      { garbage: '{"type":"error","error":{"type":"api_error","message":"broken"}}' },
      /^the provider reports broken$/,
    ],
    [{ cut: 'half an answer' }, /^the answer (broke off|ended before)/],
  ])('of Anthropic by %j reports its answer', async (reply, error) => {
    const claude = await level.start({ kind: 'anthropic' });
    const { status, body } = await ask(user('a'), reply, claude);
    await claude.stop();
    expect([status, body.error]).toEqual([502, expect.stringMatching(error)]);
  });

  it('to count vectors reports its answer', async () => {
    const embedding = await level.start({ name: 'embed.small' });
    level.provider.answer(() => ({ garbage: '<html>', contentType: 'text/html' }));
    const { status, body } = await exec(embedding, { texts: ['a'] });
    await embedding.stop();
    expect([status, body.error]).toEqual([
      502,
      expect.stringMatching(/^expected .*got status 200, text\/html: "<html>"$/),
    ]);
  });

  it('passes on when to ask again', async () => {
    level.provider.answer(() => ({ status: 429, headers: { 'retry-after': '7' } }));
    const response = await post(`${level.instance.endpoint}/exec`, JSON.stringify(user('a')));
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '7']);
    expect(response.headers.get('x-error-code')).toBe('provider_busy');
    expect(await response.json()).toMatchObject({ error: expect.stringMatching(/was answered 429/) });
  });

  it('by not listening is unavailable', async () => {
    const nobody = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => nobody.once('listening', resolve));
    const { port } = nobody.address() as AddressInfo;
    await new Promise((resolve) => nobody.close(resolve));
    const other = await level.start({ url: `http://127.0.0.1:${port}/v1` });
    const { status, body } = await exec(other, user('a'));
    await other.stop();
    expect([status, body.error]).toEqual([502, expect.stringMatching(/was not answered: .*ECONNREFUSED/)]);
  });
});

describe('a failed call reports', () => {
  const failure = { message: 'broken', type: 'server_error' };
  const usage = { prompt_tokens: 1_000, completion_tokens: 100 };
  const costOfUsage = 1_000 * 1.5e-6 + 100 * 3e-6;
  const chunk = (delta: object) => `data: ${JSON.stringify({ model: 'm', choices: [{ delta }] })}\n\n`;
  const refusal = `data: ${JSON.stringify({ error: { code: 429, message: 'later' } })}\n\n`;
  const error = (more: object = {}) => `data: ${JSON.stringify({ error: failure, ...more })}\n\n`;
  const json = 'application/json';
  it.each<[string, ModelReply, object]>([
    ['0 when it is refused', { status: 400 }, { cost_usd: 0 }],
    ['0 when the provider breaks', { status: 500 }, { cost_usd: 0 }],
    [
      'its tokens when the refusal counts some',
      { status: 500, body: { error: failure, usage } },
      { cost_usd: costOfUsage },
    ],
    [
      '0 when the refusal counts none',
      { status: 500, body: { error: failure, usage: { prompt_tokens: 0 } } },
      { cost_usd: 0 },
    ],
    ['nothing it knows after a timeout on the way', { status: 504 }, { cost_unknown: true }],
    ['nothing it knows after another one', { status: 524, body: '<html>' }, { cost_unknown: true }],
    ['0 for a refusal in place of an answer', { garbage: refusal }, { cost_usd: 0 }],
    ['nothing it knows for another error in its place', { garbage: error() }, { cost_unknown: true }],
    [
      'nothing it knows for a whole error',
      { garbage: JSON.stringify({ error: failure }), contentType: json },
      { cost_unknown: true },
    ],
    [
      'nothing it knows for an error after a text',
      { garbage: chunk({ content: 'a' }) + error() },
      { cost_unknown: true },
    ],
    [
      'nothing it knows for an error after thoughts',
      { garbage: chunk({ reasoning_content: 'a' }) + error() },
      { cost_unknown: true },
    ],
    [
      'the tokens of an error that counts them',
      { garbage: chunk({ content: 'a' }) + error({ usage }) },
      { cost_usd: costOfUsage },
    ],
    [
      'nothing it knows of an answer without an end',
      { text: 'half', finish: null, usage: null },
      { cost_unknown: true },
    ],
    [
      'nothing it knows of something else',
      { garbage: '{"result": 1}', contentType: json },
      { cost_unknown: true },
    ],
  ])('%s', async (_, reply, cost) => {
    const { body } = await ask(user('a'), reply);
    expect(body).toMatchObject({ ok: false, ...cost });
    expect(Object.keys(body).filter((name) => name.startsWith('cost_'))).toEqual(Object.keys(cost));
  });

  it('nothing it knows of a wrong answer without counts', async () => {
    const { status, body } = await ask(
      { ...user('a'), response_schema: schema },
      { text: 'no JSON', usage: null },
    );
    expect([status, body]).toMatchObject([422, { cost_unknown: true }]);
  });

  it('0 when nothing was sent', async () => {
    const closed = await level.start({ ...priced, url: 'http://127.0.0.1:1/v1' });
    const { body } = await exec(closed, user('a'));
    await closed.stop();
    expect(body).toMatchObject({ ok: false, cost_usd: 0 });
  });

  it('no cost of a model without prices', async () => {
    const free = await level.start();
    const { body } = await ask(user('a'), { garbage: chunk({ content: 'a' }) + error() }, free);
    await free.stop();
    expect(body).not.toHaveProperty('cost_unknown');
  });

  it('nothing it knows when its time is over', async () => {
    const file = { ...priced.file, timeout: '200ms' };
    const short = await level.start({ ...priced, file });
    // On a busy machine its time may be over before the provider is asked.
    const { status, body } = await waitFor('a call that is asked in time', async () => {
      const answer = await ask(user('a'), 'hang', short);
      return answer.request && answer;
    });
    await short.stop();
    expect([status, body]).toMatchObject([504, { cost_unknown: true }]);
  });
});

it('without a message is reported by its code, as where each address of a name refuses', () => {
  const refused = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
  expect(causeOf(refused)).toBe('ECONNREFUSED');
});

describe('a call whose caller has left', () => {
  const arrived = (count: number) => waitFor('the request', () => level.provider.requests[count]);

  it('is not continued at the provider when the caller leaves', async () => {
    level.provider.answer(() => 'hang');
    const caller = new AbortController();
    const before = level.provider.requests.length;
    const body = JSON.stringify(user('a'));
    const call = fetch(`${level.instance.endpoint}/exec`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: caller.signal,
    });
    const left = expect(call).rejects.toThrow();
    const request = await arrived(before);
    expect(request.isAborted).toBe(false);
    caller.abort();
    await left;
    await waitFor('the provider to see it', () => request.isAborted);
  });

  it('ends at its deadline, or after its timeout', async () => {
    level.provider.answer(() => 'hang');
    const before = level.provider.requests.length;
    // On a busy machine the deadline may be over before the provider is asked.
    const response = await waitFor('a call that is asked in time', async () => {
      const headers = { 'x-deadline': new Date(Date.now() + 300).toISOString() };
      const answer = await post(`${level.instance.endpoint}/exec`, JSON.stringify(user('a')), headers);
      expect(answer.status).toBe(504);
      return level.provider.requests.length > before ? answer : undefined;
    });
    expect(await response.json()).toMatchObject({
      error: expect.stringMatching(/^the call took longer than the \d+ ms until its deadline$/),
    });
    const request = await arrived(before);
    await waitFor('the provider to see it', () => request.isAborted);

    const impatient = await level.start({ file: { timeout: '100ms' } });
    const { body } = await exec(impatient, user('a'));
    await impatient.stop();
    expect(body.error).toBe('the call took longer than its timeout of 100ms');
  });

  it('is not sent after its deadline', async () => {
    const before = level.provider.requests.length;
    const headers = { 'x-deadline': '2020-01-01T00:00:00Z' };
    const response = await post(`${level.instance.endpoint}/exec`, JSON.stringify(user('a')), headers);
    expect([response.status, level.provider.requests.length]).toEqual([504, before]);
  });
});
