/** A model that thinks: bytes that keep the connection alive, empty answers, and a limit for silence. */
import type { ServerResponse } from 'node:http';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { registerInstance } from '../support/direct-calls.ts';
import { answer, type Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let model: Instance;
let native: Instance;

beforeAll(async () => {
  api = await startTestApi();
  model = await registerInstance(api, { name: 'model.thinks' });
  native = await registerInstance(api, {
    name: 'model.native',
    protocols: ['openai.chat', 'anthropic.messages'],
  });
});
afterAll(async () => {
  await Promise.all([model.stop(), native.stop()]);
  await api.close();
});

const messages = [{ role: 'user', content: 'hi' }] as const;
const chat = ['/openai/v1/chat/completions', { model: 'thinks', messages, stream: true }] as const;
const message = [
  '/anthropic/v1/messages',
  { model: 'thinks', messages, stream: true, max_tokens: 9 },
] as const;
const response = ['/openai/v1/responses', { model: 'thinks', input: 'hi', stream: true }] as const;
const alive = { 'x-capstan-keep-alive': '0.1' };
const ping = 'event: ping\ndata: {"type":"ping"}\n\n';
const comment = ': keep-alive\n\n';

/** Holds each line back until the test lets it go. */
function held(instance: Instance) {
  const open: ServerResponse[] = [];
  instance.handle = (_, answering) => {
    answering.writeHead(200, { 'content-type': 'application/x-ndjson' });
    answering.flushHeaders();
    open.push(answering);
  };
  return {
    say: async (line: object) => {
      await waitFor('the call to arrive', () => open.length > 0);
      open.at(-1)?.write(`${JSON.stringify(line)}\n`);
    },
    end: (line: object) => open.at(-1)?.end(`${JSON.stringify(line)}\n`),
  };
}

/** Reads a stream up to a text, and then to its end. */
async function reading(path: string, body: object, headers: Record<string, string>) {
  const answered = await api.call(path, { body, headers });
  const reader = (answered.body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let text = '';
  const until = async (isEnough: (text: string) => boolean): Promise<string> => {
    while (!isEnough(text)) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += value;
    }
    return text;
  };
  return { answered, until, rest: () => until(() => false) };
}

describe.each([
  ['chat completions', ...chat, comment],
  ['messages', ...message, ping],
  ['responses', ...response, comment],
] as const)('%s', (_, path, body, beat) => {
  test('get bytes before the first part and between parts, and then the whole answer', async () => {
    const { say, end } = held(model);
    const { answered, until, rest } = await reading(path, body, alive);
    expect([answered.status, answered.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('event-stream'),
    ]);
    const beats = await until((text) => text.split(beat).length > 3);
    expect(beats.replaceAll(beat, '')).toBe(''); // on a busy machine a chunk has more than one
    await say({ delta: { content: 'Hel' } });
    const begun = await until((text) => text.includes('Hel') && text.endsWith(beat));
    end({ ok: true, output: { text: 'Hello' } });
    const all = await rest();
    const events = all.slice(begun.length).replaceAll(beat, '');
    expect(events).toContain('lo');
    expect(events).not.toContain('"error":{');
  });

  test('get a failure after such bytes as an event', async () => {
    const { say, end } = held(model);
    const { until, rest } = await reading(path, body, alive);
    await until((text) => text.includes(beat));
    await say({ progress: 0.5 });
    end({ ok: false, status: 422, error: 'no', provider: { status: 400, code: 'content_filter' } });
    expect(await rest()).toContain('content_filter');
  });

  test('have a status where the client did not ask for bytes', async () => {
    model.handle = (__, answering) => answer(answering, 422, { ok: false, error: 'no' });
    expect((await api.call(path, { body })).status).toBe(422);
  });
});

test('a failed instance is replaced after such bytes', async () => {
  const first = await registerInstance(api, { name: 'model.pair' });
  const other = await registerInstance(api, {
    name: 'model.pair',
    cost_model: { type: 'per_call', rate_usd: 1 },
    tags: [],
  });
  other.handle = (_, answering) => answer(answering, 200, { text: 'from the other' });
  const { say, end } = held(first);
  const { until, rest } = await reading(chat[0], { ...chat[1], model: 'pair' }, alive);
  await until((text) => text.includes(comment));
  await say({ progress: 0.1 });
  end({ ok: false, status: 503, error: 'busy' });
  expect(await rest()).toContain('from the other');
  await Promise.all([first.stop(), other.stop()]);
});

test('events of a provider are never cut by such bytes', async () => {
  const { say, end } = held(native);
  const asking = reading(chat[0], { ...chat[1], model: 'native' }, alive);
  await say({ delta: { events: 'data: {"a":' } });
  const { until, rest } = await asking;
  await until((text) => text.includes('data:'));
  const waiting = held(model);
  const other = await reading(...chat, alive);
  await other.until((text) => text.split(comment).length > 3); // as long as several pauses
  await waiting.say({ progress: 1 });
  waiting.end({ ok: true, output: { text: '' } });
  await other.rest();
  await say({ delta: { events: '1}\r\n\r\n' } });
  expect(await until((text) => text.endsWith(comment))).toMatch(
    /data: \{"a":1\}\r\n\r\n(?:: keep-alive\n\n)+$/,
  );
  end({ ok: true, output: { protocol: 'openai.chat' } });
  await rest();
});

describe('the limit of silence', () => {
  test('cuts a call without a part, with a status', async () => {
    held(model);
    const before = model.execs.length;
    const { answered, rest } = await reading(...chat, { 'x-capstan-idle-timeout': '0.2' });
    expect([answered.status, JSON.parse(await rest())]).toMatchObject([
      504,
      { error: { code: 'attempt_timeout' } },
    ]);
    const own = () => model.execs.slice(before); // none, if the call was cut before it was sent
    await waitFor('the call to be closed', () => own().every(({ closed }) => closed));
  });

  test('cuts a stream that has begun, with an event', async () => {
    model.handle = (_, answering) => {
      answering.writeHead(200, { 'content-type': 'application/x-ndjson' });
      answering.write(`${JSON.stringify({ delta: { content: 'Hel' } })}\n`);
    };
    const { rest } = await reading(...message, { 'x-capstan-idle-timeout': '2' });
    expect(await rest()).toMatch(/Hel[\s\S]*event: error[\s\S]*was silent for 2\.0 s/);
  });

  test.each(['0', '-1', 'x', '100000'])('of %s seconds is refused, and named', async (seconds) => {
    const { answered, rest } = await reading(...chat, { 'x-capstan-idle-timeout': seconds });
    expect([answered.status, await rest()]).toEqual([422, expect.stringContaining('idle-timeout')]);
  });
});

test('the whole answer has the time that the client gives', async () => {
  model.handle = () => undefined;
  const { answered, rest } = await reading(...chat, { 'x-capstan-timeout': '0.3' });
  expect([answered.status, await rest()]).toEqual([504, expect.stringContaining('no answer within 300 ms')]);
});

describe('an empty answer is an answer', () => {
  test.each(['stop', 'length', 'content_filter'])(
    'that ends with %s, for official libraries',
    async (finish_reason) => {
      model.handle = (_, answering) =>
        answer(answering, 200, { text: '', finish_reason, usage: { input_tokens: 1, output_tokens: 0 } });
      const openai = new OpenAI({ baseURL: `${api.url}/openai/v1`, apiKey: api.apiKey, maxRetries: 0 });
      const anthropic = new Anthropic({ baseURL: `${api.url}/anthropic`, apiKey: api.apiKey, maxRetries: 0 });
      const made = await openai.chat.completions.create({ model: 'thinks', messages: [...messages] });
      expect(made.choices[0]).toMatchObject({ message: { content: '' }, finish_reason });
      const ask = { model: 'thinks', messages: [...messages], max_tokens: 1 };
      expect((await anthropic.messages.create(ask)).content).toEqual([]);
      expect((await anthropic.messages.stream(ask).finalMessage()).content).toEqual([]);
      expect((await openai.responses.create({ model: 'thinks', input: 'hi' })).output_text).toBe('');
      expect(
        (await openai.responses.stream({ model: 'thinks', input: 'hi' }).finalResponse()).output,
      ).toEqual([]);
    },
  );
});
