import { checkCapability } from '@capstan/capability/conformance';
import type { RunningInstance } from '@capstan/capability/lifecycle/start-instance';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startModelServer } from '../../../test/support/model-server.ts';
import {
  anthropicMessage,
  chatChunks,
  chatCompletion,
  type WrittenAnswer,
} from '../../../test/support/model-wire.ts';
import { defineModel, modelKey, priced } from '../../../test/support/wrapped-models.ts';
import { startFakeRouter } from '../../capability/test/support/fake-router.ts';
import { type ModelLevel, schema, startModelLevel, user } from './model-level.ts';

let level: ModelLevel;
const ask: ModelLevel['ask'] = (...call) => level.ask(...call);

beforeAll(async () => {
  level = await startModelLevel();
});
afterAll(() => level.close());

describe('an answer', () => {
  it('is text with model, usage and what it cost', async () => {
    const { status, body } = await ask(user('Hi'), {
      text: 'Hello, world',
      model: 'small-v2',
      usage: [1_000, 200],
    });
    expect([status, body]).toEqual([
      200,
      {
        ok: true,
        output: {
          text: 'Hello, world',
          model: 'small-v2',
          finish_reason: 'stop',
          usage: { input_tokens: 1_000, output_tokens: 200 },
          cost_usd: 0.0021,
        },
      },
    ]);
  });

  it('may come whole, from a provider that does not stream', async () => {
    const whole = chatCompletion('small', { text: 'hello' });
    const reply = { garbage: JSON.stringify(whole), contentType: 'application/json; charset=utf-8' };
    const streamed = await ask(user('hi'), { text: 'hello' });
    expect((await ask(user('hi'), reply)).body).toEqual(streamed.body);
    const cut = JSON.stringify(chatCompletion('small', { text: 'hel', finish: 'length' }));
    const { body } = await ask(user('hi'), { garbage: cut, contentType: 'application/json' });
    expect(body).toMatchObject({ output: { text: 'hel', finish_reason: 'length' } });
  });

  it.each<['openai' | 'anthropic', string, (reply: WrittenAnswer) => object]>([
    ['openai', 'application/json', (reply) => chatCompletion('small', reply)],
    ['openai', 'text/plain', (reply) => chatCompletion('small', reply)],
    ['openai', 'text/event-stream', (reply) => chatCompletion('small', reply)],
    ['anthropic', 'application/json', (reply) => anthropicMessage('small', reply)],
  ])('of %s may come whole as %s, with calls of tools', async (kind, contentType, write) => {
    const other = await level.start({ kind });
    const toolCalls = ['1', '2'].map((id) => ({ id, name: 'weather', arguments: `{"place":${id}}` }));
    const reply = { text: 'Let me see.', toolCalls, finish: 'tool_calls', usage: [7, 3] } as const;
    const input = { ...user('a'), tools: [{ name: 'weather' }] };
    const { status, body } = await ask(input, { garbage: JSON.stringify(write(reply)), contentType }, other);
    await other.stop();
    expect([status, body.output]).toEqual([
      200,
      {
        text: 'Let me see.',
        tool_calls: toolCalls.map(({ id, ...called }) => ({ id, type: 'function', function: called })),
        model: 'small',
        finish_reason: 'tool_calls',
        usage: { input_tokens: 7, output_tokens: 3 },
      },
    ]);
  });

  it('is a stream whatever its content type is', async () => {
    const garbage = `: a comment\n\n${chatChunks('small', { text: 'hello' }).join('')}`;
    const { body } = await ask(user('hi'), { garbage, contentType: 'text/plain' });
    expect(body).toMatchObject({ output: { text: 'hello', finish_reason: 'stop' } });
  });

  it('is asked for once, streamed, with the parameters of the input', async () => {
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'system', content: 'Be brief.' },
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'c' },
      { role: 'system', content: 'Be kind.' },
    ];
    const input = { messages, temperature: 0, seed: 7, max_output_tokens: 50 };
    const { request } = await ask(input, { text: 'x' });
    expect(request?.headers.authorization).toBe(`Bearer ${modelKey}`);
    expect(request?.body).toEqual({
      model: 'small',
      messages: [
        { role: 'system', content: 'Be brief.\n\nBe kind.' },
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
        { role: 'user', content: 'c' },
      ],
      temperature: 0,
      seed: 7,
      max_tokens: 50,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it('is never longer than the operator allows', async () => {
    const { request, body } = await ask(
      { ...user('a'), max_output_tokens: 1_000_000 },
      { text: 'cut he', finish: 'length' },
    );
    expect(request?.body.max_tokens).toBe(4_096);
    expect(body.output).toMatchObject({ text: 'cut he', finish_reason: 'length' });
  });

  it('leaves cost and usage open where the provider counts neither, so that the whole price is charged', async () => {
    const { body } = await ask(user('a'), { text: 'x', usage: null });
    expect(body.output).toEqual({
      text: 'x',
      model: 'small',
      finish_reason: 'stop',
      usage: { input_tokens: null, output_tokens: null },
    });
  });
});

describe('chunks of a stream', () => {
  it('report which stop ended the answer, as vLLM writes it', async () => {
    const { body } = await ask({ ...user('a'), stop: ['END'] }, { text: 'b', stopSequence: 'END' });
    expect(body.output).toMatchObject({ text: 'b', finish_reason: 'stop', stop_sequence: 'END' });
  });

  const weather = { name: 'weather', arguments: '{"place":"Oslo"}' };
  const call = (id: string, called = weather) => ({ id, type: 'function', function: called });
  const written = (...deltas: object[]): string =>
    [...deltas.map((delta) => ({ delta })), { delta: {}, finish_reason: 'stop' }]
      .map((choice) => `data: ${JSON.stringify({ model: 'small', choices: [choice] })}\n\n`)
      .join('');
  const tools = (...pieces: object[]) => ({ tool_calls: pieces });

  it.each<[string, string, object]>([
    [
      'have their content in parts',
      written({ content: [{ type: 'text', text: 'he' }, { type: 'thinking' }] }, { content: 'llo' }),
      { text: 'hello' },
    ],
    [
      'report the thoughts of the model',
      written({ reasoning_content: 'hm' }, { content: 'hello' }),
      { text: 'hello' },
    ],
    ['end their lines with CR', written({ content: 'hello' }).replaceAll('\n', '\r\n'), { text: 'hello' }],
    [
      'lay out their JSON on several lines',
      `data: {"choices": [\ndata: {"delta": {"content": "hello"}, "finish_reason": "stop"}]}\n\n`,
      { text: 'hello' },
    ],
    ['end without a blank line', written({ content: 'hello' }).trimEnd(), { text: 'hello' }],
    [
      'bring a call of a tool at once, without an index',
      written(tools({ id: 'a', function: weather }, { id: 'b', function: weather })),
      { tool_calls: [call('a'), call('b')] },
    ],
    [
      'give all calls one index',
      written(
        tools({ index: 0, id: 'a', function: weather }),
        tools({ index: 0, id: 'b', function: { ...weather, arguments: '' } }),
        tools({ index: 0, function: { arguments: '{}' } }),
      ),
      { tool_calls: [call('a'), call('b', { name: 'weather', arguments: '{}' })] },
    ],
    [
      'name a tool after its first arguments',
      written(
        tools({ index: 0, id: 'a', function: { arguments: '{"place"' } }),
        tools({ index: 0, function: { name: 'weather', arguments: ':"Oslo"}' } }),
      ),
      { tool_calls: [call('a')] },
    ],
    [
      'repeat the id and the name in each',
      written(
        tools({ index: 0, id: 'a', function: { name: 'weather', arguments: '{"place"' } }),
        tools({ index: 0, id: 'a', function: { name: 'weather', arguments: ':"Oslo"}' } }),
      ),
      { tool_calls: [call('a')] },
    ],
    [
      'give a call no id',
      written(tools({ index: 0, function: weather })),
      { tool_calls: [call(expect.stringMatching(/^./))] },
    ],
  ])('may %s', async (_name, garbage, output) => {
    const { status, body } = await ask({ ...user('a'), tools: [{ name: 'weather' }] }, { garbage });
    expect([status, body]).toMatchObject([200, { output }]);
  });

  it('come from the address of the file alone: the error names where the provider has moved', async () => {
    const location = `${level.provider.url}/chat/completions`;
    const moved = await startModelServer(() => ({ status: 308, headers: { location } }));
    const other = await level.start({ url: moved.url });
    const { status, body, request } = await ask(user('a'), { text: 'from there' }, other);
    await other.stop();
    await moved.close();
    expect([status, request]).toEqual([502, undefined]);
    expect(body.error).toMatch(`was answered 308: it leads to ${location}`);
  });
});

describe('an answer by schema', () => {
  it('is parsed JSON, asked for with the schema as it is', async () => {
    const { body, request } = await ask(
      { ...user('a'), response_schema: schema },
      { text: '{"rate": 44100}' },
    );
    expect(body.output).toMatchObject({ json: { rate: 44_100 }, text: '{"rate": 44100}' });
    expect(request?.body.response_format).toEqual({
      type: 'json_schema',
      json_schema: { name: 'response', schema, strict: false },
    });
  });

  it.each([
    ['is no JSON', 'The rate is 44100.', /^the answer is not JSON; the answer was "The rate is/],
    ['breaks the schema', '{"rate": "44.1k"}', /^\/rate .*integer.*; the answer was ".*44\.1k/],
    ['is empty', '', /^the answer is not JSON/],
  ])('is refused with what is wrong when it %s', async (_name, text, error) => {
    const { status, body } = await ask({ ...user('a'), response_schema: schema }, { text });
    expect([status, body.error]).toEqual([422, expect.stringMatching(error)]);
  });

  it('shows at most 500 characters of a wrong answer, and why it ended', async () => {
    const { body } = await ask(
      { ...user('a'), response_schema: schema },
      { text: `{"rate": ${'9'.repeat(5_000)}`, finish: 'length' },
    );
    expect(body.error).toMatch(/not JSON, finish_reason length; the answer was ".{450,520}"$/);
  });

  it.each([
    ['json_object', { type: 'json_object' }],
    ['prompt', undefined],
  ])('is described in words with structured_output: %s', async (way, format) => {
    const other = await level.start({ part: { structured_output: way } });
    const wrapped = { text: '```json\n{"rate": 1}\n```' };
    const { body, request } = await ask({ ...user('a'), response_schema: schema }, wrapped, other);
    await other.stop();
    expect(body.output).toMatchObject({ json: { rate: 1 } });
    expect(request?.body.response_format).toEqual(format);
    expect(request?.body.messages[0]?.content).toContain(JSON.stringify(schema));
  });

  it('is not asked for when the schema cannot be used', async () => {
    const response_schema = { $ref: 'https://example.com/schema.json' };
    const { status, body, request } = await ask({ ...user('a'), response_schema }, { text: '{}' });
    expect([status, body.error, request]).toEqual([
      422,
      expect.stringMatching(/^response_schema cannot be used: /),
      undefined,
    ]);
  });
});

describe('with Anthropic', () => {
  let claude: RunningInstance;
  beforeAll(async () => {
    claude = await level.start({ kind: 'anthropic', part: { model: 'claude-sonnet-4-5' } });
  });
  afterAll(() => claude.stop());

  it('answers the same, without a seed', async () => {
    const input = { ...user('a'), response_schema: schema, seed: 3, temperature: 0.5 };
    const { body, request } = await ask(input, { text: '{"rate": 8000}', usage: [12, 6] }, claude);
    expect(body.output).toEqual({
      text: '{"rate": 8000}',
      json: { rate: 8_000 },
      model: 'claude-sonnet-4-5',
      finish_reason: 'stop',
      usage: { input_tokens: 12, output_tokens: 6 },
    });
    expect(request).toMatchObject({ path: '/v1/messages', headers: { 'x-api-key': modelKey } });
    expect(request?.body).toMatchObject({ max_tokens: 4_096, temperature: 0.5, stream: true });
    expect(request?.body).not.toHaveProperty('seed');
  });

  it('reports which stop ended the answer', async () => {
    const { body } = await ask({ ...user('a'), stop: ['END'] }, { text: 'b', stopSequence: 'END' }, claude);
    expect(body.output).toMatchObject({ text: 'b', finish_reason: 'stop', stop_sequence: 'END' });
  });

  it('does not take the first half of an answer for the whole', async () => {
    const { status, body } = await ask(user('a'), { text: 'half an ans', finish: null }, claude);
    expect([status, body.error]).toEqual([502, expect.stringMatching(/ended before/)]);
  });

  it.each([
    [401, 502, /was answered 401: .*no/],
    [529, 503, /was answered 529: .*no/],
  ])('reports status %i by its own code', async (status, answered, error) => {
    const refusal = { status, body: { type: 'error', error: { type: 'some_error', message: 'no' } } };
    const { status: seen, body } = await ask(user('a'), refusal, claude);
    expect([seen, body.error]).toEqual([answered, expect.stringMatching(error)]);
  });
});

describe('an instance', () => {
  it('keeps the contract of a capability', async () => {
    expect((await checkCapability(level.instance.endpoint)).filter(({ ok }) => !ok)).toEqual([]);
  });

  it.each([
    ['no message at all', { messages: [] }],
    ['system messages only', { messages: [{ role: 'system', content: 'a' }] }],
    ['a field that it does not know', { ...user('a'), max_tokens: 5 }],
  ])('refuses %s', async (_name, input) => {
    const { status, request } = await ask(input, { text: 'x' });
    expect([status, request]).toEqual([422, undefined]);
  });

  it('registers its level, its price and that it reports costs', async () => {
    const router = await startFakeRouter();
    const top = await level.start(
      { ...priced, name: 'model.top', file: { ...priced.file, tags: ['local'] } },
      { ROUTER_URL: router.url, ROUTER_TOKEN: 't' },
    );
    await top.stop();
    router.close();
    expect(router.said[0]?.body).toMatchObject({
      name: 'model.top',
      cost_model: { type: 'per_call', rate_usd: 0.02 },
      settle: 'reported',
      tags: ['local'],
      max_concurrency: 4,
    });
  });

  it('is free and computed when no price is set', () => {
    const capability = defineModel({ url: level.provider.url });
    expect(capability).toMatchObject({ cost_model: { type: 'free', rate_usd: 0 }, settle: 'computed' });
  });

  it('logs when a call costs more than is counted', async () => {
    await ask(user('a'), { text: 'x', usage: [1_000_000, 1] });
    expect(level.lines.join()).toContain('a call cost 1.500003 USD; only the rate_usd, 0.02, is counted');
  });

  it('asks nothing that could cost more than is reserved', async () => {
    const asked = level.provider.requests.length;
    const { status, body } = await ask(user('long '.repeat(2_000)), { text: 'x' });
    expect([status, level.provider.requests.length]).toEqual([422, asked]);
    expect(body.error).toMatch(
      /^up to \d+ tokens of question and 4096 tokens of answer may cost 0\.02\d+ USD/,
    );
  });

  it('serves one name with instances of both kinds, whose schemas are equal', () => {
    const specOf = (kind: 'openai' | 'anthropic') => defineModel({ kind, url: level.provider.url }).spec;
    const protocols = expect.any(Array);
    expect({ ...specOf('anthropic'), protocols }).toEqual({ ...specOf('openai'), protocols });
  });
});
