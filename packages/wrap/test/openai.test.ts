import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ModelReply, type ModelServer, startModelServer } from '../../../test/support/model-server.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { call, callInLines, failedChecks, startWrapped } from './support.ts';

function anOpenai(url: string, endpoint: string, more = ''): string {
  return `kind: openai
name: model.fast
version: 1.0.0
description: Asks a model.
cost:
  type: per_call
  rate_usd: 1
  measured:
    - {value: "{{ answer.usage.input_tokens }}", rate_usd: 100, per: 1000000}
    - {value: "{{ answer.usage.output_tokens }}", rate_usd: 200, per: 1000000}
openai:
  base_url: "${url}"
  token: \${TOKEN}
  endpoint: ${endpoint}
  model: small
${more}`;
}

const environment = { TOKEN: 'a-secret-token' };
const messages = [{ role: 'user', content: 'hi' }];

async function startChat(
  reply: ModelReply,
): Promise<{ server: ModelServer; instance: Awaited<ReturnType<typeof startWrapped>> }> {
  const server = await startModelServer(() => reply);
  onTestFinished(() => server.close());
  const text = anOpenai(server.url, 'chat', '  settings: {temperature: 0.5, stream_options: null}\n');
  return { server, instance: await startWrapped(text, { environment }) };
}

describe('chat', () => {
  it('answers the text at the price of its tokens, and keeps the contract', async () => {
    const { server, instance } = await startChat({ text: 'Hello, world', usage: [10, 5] });
    const input = { messages, max_output_tokens: 9, seed: 3 };
    expect((await call(instance, input)).body.output).toEqual({
      text: 'Hello, world',
      model: 'small',
      finish_reason: 'stop',
      usage: { input_tokens: 10, output_tokens: 5 },
      cost_usd: 0.002,
    });
    expect(server.requests[0]).toMatchObject({
      path: '/v1/chat/completions',
      headers: { authorization: 'Bearer a-secret-token' },
      body: { model: 'small', messages, max_tokens: 9, seed: 3, temperature: 0.5, stream: true },
    });
    expect(server.requests[0]?.body).not.toHaveProperty('stream_options');
    expect(await failedChecks(instance, input)).toEqual([]);
  });

  it('passes on parts of the answer to a caller that wants a stream', async () => {
    const { instance } = await startChat({ text: 'Hello, world' });
    const lines = await callInLines(instance, { messages }, 'delta');
    const parts = lines.flatMap(({ delta }) =>
      delta === undefined ? [] : [(delta as { content: string }).content],
    );
    expect(parts.length).toBeGreaterThan(1);
    expect(parts.join('')).toBe('Hello, world');
  });

  it('accepts a whole answer of a server that does not stream', async () => {
    const whole = { choices: [{ message: { content: 'whole' }, finish_reason: 'length' }], model: 'm' };
    const { instance } = await startChat({ garbage: JSON.stringify(whole), contentType: 'application/json' });
    expect((await call(instance, { messages })).body.output).toMatchObject({
      text: 'whole',
      finish_reason: 'length',
      model: 'm',
    });
  });

  it('reports which stop ended the answer, if the server does', async () => {
    const choice = { message: { content: 'one' }, finish_reason: 'stop' };
    for (const [stop_reason, said] of [['END', { stop_sequence: 'END' }] as const, [128_009, {}] as const]) {
      const whole = { choices: [{ ...choice, stop_reason }], model: 'm' };
      const { instance } = await startChat({
        garbage: JSON.stringify(whole),
        contentType: 'application/json',
      });
      const { output } = (await call(instance, { messages, stop: ['END'] })).body;
      const { usage: _, ...answer } = output as JsonObject;
      expect(answer).toEqual({ text: 'one', finish_reason: 'stop', model: 'm', ...said });
    }
  });

  it('answers JSON of a schema, and refuses what does not match', async () => {
    const schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
    const { server, instance } = await startChat({ text: '```json\n{"n": 3}\n```' });
    expect((await call(instance, { messages, response_schema: schema })).body.output).toMatchObject({
      json: { n: 3 },
    });
    expect(server.requests[0]?.body.response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'response', schema, strict: false },
    });
    server.answer(() => ({ text: '{"n": "x"}' }));
    expect(await call(instance, { messages, response_schema: schema })).toMatchObject({
      status: 422,
      code: 'model_answer_invalid',
    });
  });

  it.each([
    [{ cut: 'half an answer' }, 502, 'provider_unavailable'],
    [{ text: 'no end', finish: null }, 502, 'provider_unavailable'],
    [{ garbage: 'data: {"error": {"message": "a-secret-token"}}\n\n' }, 502, 'provider_unavailable'],
    [{ status: 401 }, 502, 'provider_config'],
    [{ status: 429, headers: { 'retry-after': '7' } }, 503, 'provider_busy'],
  ] as const)('turns %j into %i %s', async (reply, status, code) => {
    const { instance } = await startChat(reply as ModelReply);
    const answer = await call(instance, { messages });
    expect(answer).toMatchObject({ status, code });
    expect(answer.body.error).not.toContain('a-secret-token');
  });

  it('leaves the provider when the caller leaves', async () => {
    const { server, instance } = await startChat('hang');
    const leaving = new AbortController();
    const left = call(instance, { messages }, { signal: leaving.signal }).catch(() => 'left');
    await waitFor('the request', async () => server.requests.length === 1);
    leaving.abort();
    expect(await left).toBe('left');
    await waitFor('its end', async () => server.requests[0]?.isAborted === true);
  });
});

/** A server of the endpoints with files; it keeps the bodies of its requests. */
async function startFileServer(): Promise<{ url: string; bodies: string[] }> {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    bodies.push((await request.setEncoding('latin1').toArray()).join(''));
    if (request.url === '/v1/audio/speech')
      return void response.writeHead(200, { 'content-type': 'audio/mpeg' }).end('SPOKEN');
    const picture = { b64_json: Buffer.from('PICTURE').toString('base64') };
    const isImages = request.url === '/v1/images/generations';
    const spoken = {
      text: 'hello',
      language: 'english',
      duration: 1.5,
      segments: [{ id: 0, start: 0, end: 1.5, text: 'hello', tokens: [] }],
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isImages ? { data: [picture, picture] } : spoken));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, bodies };
}

it('transcribes a file', async () => {
  const { url, bodies } = await startFileServer();
  const instance = await startWrapped(anOpenai(url, 'transcriptions'), { environment });
  await instance.put('media://job/a.wav', 'SOUND');
  const input = { audio: 'media://job/a.wav', language: 'en' };
  expect((await call(instance, input)).body.output).toEqual({
    text: 'hello',
    language: 'english',
    duration_s: 1.5,
    segments: [{ start: 0, end: 1.5, text: 'hello' }],
  });
  expect(bodies[0]).toMatch(/name="file"; filename="\d-a.wav"\r\nContent-Type: audio\/wav\r\n\r\nSOUND/);
  expect(bodies[0]).toMatch(/name="model"\r\n\r\nsmall\r\n/);
  expect(await failedChecks(instance, input)).toEqual([]);
});

it('speaks into a file of the form that its name has', async () => {
  const { url, bodies } = await startFileServer();
  const instance = await startWrapped(anOpenai(url, 'speech', '  settings: {voice: nova}\n'), {
    environment,
  });
  const input = { text: 'hello', output_path: 'media://job/out.mp3' };
  expect((await call(instance, input)).body.output).toMatchObject({ output_path: 'media://job/out.mp3' });
  expect((await instance.get('media://job/out.mp3')).toString()).toBe('SPOKEN');
  expect(JSON.parse(bodies[0] ?? '')).toEqual({
    model: 'small',
    input: 'hello',
    voice: 'nova',
    response_format: 'mp3',
  });
  expect(await call(instance, { text: 'hello', output_path: 'media://job/out.txt' })).toMatchObject({
    status: 422,
  });
  expect(await failedChecks(instance, input)).toEqual([]);
});

it('stores the images that it gets', async () => {
  const { url, bodies } = await startFileServer();
  const instance = await startWrapped(anOpenai(url, 'images', '  settings: {response_format: null}\n'), {
    environment,
  });
  const input = { prompt: 'a cat', n: 2, output_path: 'media://job/cat.png' };
  expect((await call(instance, input)).body.output).toMatchObject({
    output_path: 'media://job/cat.png',
    output_paths: ['media://job/cat.png', 'media://job/cat-2.png'],
  });
  expect((await instance.get('media://job/cat-2.png')).toString()).toBe('PICTURE');
  expect(JSON.parse(bodies[0] ?? '')).toEqual({ model: 'small', prompt: 'a cat', n: 2 });
  expect(await failedChecks(instance, input)).toEqual([]);
});
