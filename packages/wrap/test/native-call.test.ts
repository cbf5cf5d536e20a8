/** Calls of `model.…` in the client's own protocol: what the provider gets, and what the client gets. */
import type { RunningInstance } from '@capstan/capability/lifecycle/start-instance';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelReply } from '../../../test/support/model-server.ts';
import { defineModel, type ModelFile, modelKey, priced } from '../../../test/support/wrapped-models.ts';
import { editMember } from '../src/models/native/request.ts';
import { type ModelLevel, startModelLevel, user } from './model-level.ts';
import { callInLines } from './support.ts';

let level: ModelLevel;
const models: Record<string, RunningInstance> = {};
const all = { protocols: ['openai.chat', 'openai.responses'] };

beforeAll(async () => {
  level = await startModelLevel();
  const { file, part } = priced;
  models['openai.chat'] = await level.start({ file, part: { ...part, ...all } });
  models['openai.responses'] = models['openai.chat'];
  models['anthropic.messages'] = await level.start({ kind: 'anthropic', ...priced });
});
afterAll(async () => {
  await Promise.all(Object.values(models).map((model) => model.stop()));
  await level.close();
});

type Protocol = 'openai.chat' | 'openai.responses' | 'anthropic.messages';

/** One exchange as it was between a client and a provider. */
interface Exchange {
  readonly protocol: Protocol;
  readonly path: string;
  readonly request: string;
  /** Of the stream of the same request. */
  readonly events: string;
  readonly response: string;
  readonly usage: readonly [number, number];
}

const chat: Exchange = {
  protocol: 'openai.chat',
  path: '/v1/chat/completions',
  request: `{ "model" : "fast",\r\n\t"seed": 12345678901234567890, "top_p":1.0, "max_completion_tokens":50, "x_new":{"model":"fast","b":[1e2 , {"stream":false}]},
  "messages":[{"role":"user","content":[{"type":"text","text":"H\\u00e9 \\"model\\": 😀","cache_control":{"type":"ephemeral"}}]}] }\n`,
  events: [
    ': OPENROUTER PROCESSING\n\n',
    'data: {"id":"c","object":"chat.completion.chunk","model":"small","x":1.0,"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"hm 漢字"}}]}\n\n',
    'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}]}}]}\r\n\r\n',
    'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"n\\":12345678901234567890}"}},{"index":1,"function":{"arguments":"}"}}]}}]}\n\n',
    'data: {"choices":[{"index":0,"delta":{"content":"caf\\u00e9 😀"},"finish_reason":"tool_calls"}]}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":200}}\n\n',
    'data: [DONE]\n\n',
  ].join(''),
  response: `{"id":"c", "x":1.0,"model":"small",\n"big":12345678901234567890,"choices":[{"index":0,"message":{"role":"assistant","content":"caf\\u00e9","extra":[ ]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":200}}\n`,
  usage: [1_000, 200],
};

const messages: Exchange = {
  protocol: 'anthropic.messages',
  path: '/v1/messages',
  request: `{"max_tokens": 50,"model":"top","thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"Eq==\\/"},{"type":"tool_use","id":"t","name":"f","input":{"n":12345678901234567890,"r":1.50}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`,
  events: [
    'event: message_start\ndata: {"type":"message_start","message":{"model":"small","usage":{"input_tokens":900,"cache_read_input_tokens":100,"output_tokens":1}}}\n\n',
    'event: ping\ndata: {"type": "ping"}\n\n',
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB=="}}\n\n',
    'event: content_block_start\ndata: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"error\\": 漢 1.0}"}}\n\n',
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":200}}\n\n',
    'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  ].join(''),
  response: `{"type":"message","model":"small","content":[{"type":"thinking","thinking":"h","signature":"Eq=="},{"type":"text","text":"caf\\u00e9"}],"stop_reason":"end_turn","x":1.0,"usage":{"input_tokens":900,"cache_read_input_tokens":100,"output_tokens":200}}`,
  usage: [1_000, 200],
};

const responses: Exchange = {
  protocol: 'openai.responses',
  path: '/v1/responses',
  request: `{"model":"fast","input":"hi","max_output_tokens":50,"reasoning":{"effort":"low","x":1.0},"store":false}`,
  events: [
    'event: response.created\ndata: {"type":"response.created","response":{"id":"r","status":"in_progress"}}\n\n',
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"😀","n":1.0}\n\n',
    'event: response.completed\ndata: {"type":"response.completed","response":{"model":"small","status":"completed","output":[{}],"usage":{"input_tokens":1000,"output_tokens":200}}}\n\n',
  ].join(''),
  response: `{"id":"r","model":"small","status":"completed","error":null,"output":[{"type":"message","x":1.0}],"usage":{"input_tokens":1000,"output_tokens":200}}`,
  usage: [1_000, 200],
};

const exchanges = [chat, messages, responses];

function streamed(request: string, more = ''): string {
  return request.replace('{', `{"stream" : true,${more}`);
}

function withModel(request: string): string {
  return request.replace(/"model"( ?): ?"\w+"/, (seen) => seen.replace(/"\w+"$/, '"small"'));
}

const usageAsked = '"stream_options":{"include_usage":true},';

function input(protocol: Protocol, request: string, more: object = {}) {
  return { protocol, request, most_input_tokens: 100, ...more };
}

function modelOf(protocol: Protocol): RunningInstance {
  return models[protocol] as RunningInstance;
}

function textOf(lines: readonly Record<string, unknown>[]): string {
  return lines.map(({ delta }) => String((delta as { events?: string } | undefined)?.events ?? '')).join('');
}

async function stream(given: object, reply: ModelReply, model: RunningInstance) {
  level.provider.answer(() => reply);
  const lines = await callInLines(model, given, 'delta');
  return { text: textOf(lines), last: lines.at(-1) ?? {}, lines, request: level.provider.requests.at(-1) };
}

/** A model for one test. */
async function withModelFile<Result>(
  file: Partial<ModelFile>,
  use: (model: RunningInstance) => Promise<Result>,
) {
  const model = await level.start(file);
  try {
    return await use(model);
  } finally {
    await model.stop();
  }
}

describe.each(exchanges)('$protocol', ({ protocol, path, request, events, response, usage }) => {
  const counted = { input_tokens: usage[0], output_tokens: usage[1] };

  it('passes a request and its answer on as they are', async () => {
    const reply = { garbage: response, contentType: 'application/json' };
    const answered = await level.ask(input(protocol, request), reply, modelOf(protocol));
    expect(answered.request?.text).toBe(withModel(request));
    expect(answered.request?.path).toBe(path);
    expect(answered.body).toMatchObject({
      ok: true,
      output: { protocol, response, model: 'small', usage: counted },
    });
    expect(answered.body).toMatchObject({ output: { cost_usd: 0.0021 } });
  });

  it('passes a stream on, however its bytes are cut', async () => {
    const asked = streamed(request, protocol === 'openai.chat' ? usageAsked : '');
    const size = Buffer.byteLength(events);
    for (const each of [1, 2, 3, 5, 7, 11, 64, 1_000, size]) {
      const {
        text,
        last,
        request: sent,
      } = await stream(input(protocol, asked), { garbage: events, each }, modelOf(protocol));
      expect(text).toBe(events);
      expect(sent?.text).toBe(withModel(asked));
      expect(last).toMatchObject({ ok: true, output: { protocol, usage: counted, cost_usd: 0.0021 } });
      expect(last.output).not.toHaveProperty('response');
    }
  });

  it('sets a limit only where the request has none, and lowers one that is above that of the file', async () => {
    const name = /"(max_\w+)": ?50/.exec(request)?.[1];
    const limited = async (written: string) => {
      const given = request.replace(/"max_\w+": ?50,/, written);
      const reply = { garbage: response, contentType: 'application/json' };
      const { request: sent } = await level.ask(input(protocol, given), reply, modelOf(protocol));
      return sent?.body;
    };
    expect(await limited(`"${name}":9007199254740993,`)).toMatchObject({ [name as string]: 4_096 });
    const field = protocol === 'openai.chat' ? 'max_tokens' : (name as string);
    expect(await limited('')).toMatchObject({ [field]: 4_096 });
    expect(await limited(`"${name}":null,`)).toMatchObject({ [field]: 4_096 });
  });

  it('reports the words of the provider when it refuses', async () => {
    const error = { type: 'invalid_request_error', code: 'bad', message: 'no such tool' };
    const details = { error_code: 'unsupported', key: modelKey, list: [1, null] };
    const reply = { status: 400, body: { error: { ...error, details, param: null } } };
    const { status, body } = await level.ask(input(protocol, request), reply, modelOf(protocol));
    expect([status, body]).toEqual([
      422,
      expect.objectContaining({
        provider: { status: 400, ...error, more: { details: { ...details, key: '***' } } },
        cost_usd: 0,
      }),
    ]);
  });

  it.each([
    [
      'an error',
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
    ],
    ['nothing', ''],
  ])('fails when a stream ends with %s, which the router reports', async (_, end) => {
    const begin = events.slice(0, events.indexOf('\n\n') + 2);
    const { text, last } = await stream(
      input(protocol, streamed(request)),
      { garbage: begin + end },
      modelOf(protocol),
    );
    expect(text).toBe(begin);
    expect(last).toMatchObject({ ok: false });
    if (end !== '') expect(last).toMatchObject({ provider: { type: 'overloaded_error', message: 'busy' } });
  });
});

describe('a stream of chat completions', () => {
  it.each([
    ['', usageAsked.slice(0, -1)],
    ['"stream_options":null,', usageAsked.slice(0, -1)],
    [
      '"stream_options":{ "x":1.0,"include_usage":false },',
      '"stream_options":{ "x":1.0,"include_usage":true }',
    ],
    ['"stream_options": { },', '"stream_options": {"include_usage":true }'],
  ])('counts tokens for a client that did not ask, with %s', async (written, sent) => {
    const { text, last, request } = await stream(
      input('openai.chat', streamed(chat.request, written)),
      { garbage: chat.events, each: 3 },
      modelOf('openai.chat'),
    );
    expect(request?.text).toContain(sent);
    expect(text).toBe(chat.events.replace(/data: \{"choices":\[\],.*\n\n/, ''));
    expect(last).toMatchObject({ output: { usage: { input_tokens: 1_000, output_tokens: 200 } } });
  });

  it('keeps its lines short, and its characters whole', async () => {
    const long = `data: {"choices":[{"delta":{"content":"${'\\u0001😀"'.replace('"', '').repeat(9_000)}"},"finish_reason":"stop"}]}\n\n`;
    const { text, lines } = await stream(
      input('openai.chat', streamed(chat.request, usageAsked)),
      { garbage: long },
      modelOf('openai.chat'),
    );
    expect(text).toBe(long);
    expect(Math.max(...lines.map((line) => Buffer.byteLength(JSON.stringify(line))))).toBeLessThan(16_384);
  });
});

describe('a file', () => {
  it('declares the protocols of its provider', () => {
    const spoken = (file: Partial<ModelFile>) =>
      defineModel({ url: 'http://127.0.0.1:1/v1', ...file }).spec.protocols;
    expect(spoken({})).toEqual(['openai.chat']);
    expect(spoken({ kind: 'anthropic' })).toEqual(['anthropic.messages']);
    expect(spoken({ part: all })).toEqual(all.protocols);
    expect(spoken({ part: { protocols: [] } })).toBeUndefined();
    expect(spoken({ part: { settings: { stream: false } } })).toBeUndefined();
    expect(spoken({ file: { result: { text: '{{ answer.text }}' } } })).toBeUndefined();
  });

  it('adds its settings, of which null removes a field', async () => {
    const part = { settings: { x_new: null, service_tier: 'flex', stream_options: null } };
    const { request } = await withModelFile({ part }, (model) =>
      stream(input('openai.chat', streamed(chat.request)), { garbage: chat.events }, model),
    );
    expect(request?.body).toMatchObject({ service_tier: 'flex', model: 'small' });
    expect(request?.body).not.toHaveProperty('x_new');
    expect(request?.body).not.toHaveProperty('stream_options');
    expect(request?.text).toContain('12345678901234567890, "top_p":1.0');
  });

  it('has headers that replace those of the client, which replace those of the protocol', async () => {
    const headers = { 'anthropic-version': '2024-01-01', 'anthropic-beta': 'a,b' } as const;
    const given = input('anthropic.messages', messages.request, { headers });
    const reply = { garbage: messages.response, contentType: 'application/json' };
    const { request } = await level.ask(given, reply, modelOf('anthropic.messages'));
    expect(request?.headers).toMatchObject({ ...headers, 'x-api-key': modelKey });
    const part = { headers: { 'Anthropic-Beta': 'c' } };
    await withModelFile({ kind: 'anthropic', part }, async (model) => {
      const { request: other } = await level.ask(given, reply, model);
      expect(other?.headers).toMatchObject({ ...headers, 'anthropic-beta': 'c' });
    });
  });

  it('asks nothing that its rate does not cover, or that it does not speak', async () => {
    const { status, request } = await level.ask(
      input('openai.chat', chat.request, { most_input_tokens: 1e9 }),
      { text: 'x' },
      modelOf('openai.chat'),
    );
    expect([status, request]).toEqual([422, undefined]);
    const other = await level.ask(
      input('anthropic.messages', messages.request),
      { text: 'x' },
      modelOf('openai.chat'),
    );
    expect([other.status, other.request]).toEqual([422, undefined]);
  });

  it('takes an input of one of the two forms', async () => {
    const [openai] = [modelOf('openai.chat')];
    for (const given of [{}, { protocol: 'openai.chat' }, { ...user('hi'), n: 9 }, { request: '{}' }]) {
      expect((await level.ask(given, { text: 'x' }, openai)).status).toBe(422);
    }
    expect((await level.ask(user('hi'), { text: 'x' }, openai)).status).toBe(200);
  });
});

describe('a member of a request', () => {
  const Name = fc.constantFrom('model', 'a', '"q\\', 'é');

  it('is exchanged, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.dictionary(Name, fc.jsonValue()),
        Name,
        fc.constantFrom('', ' ', '\n\t'),
        (object, name, gap) => {
          const text = `${gap}${JSON.stringify(object, null, gap)}${gap}`;
          expect(JSON.parse(editMember(text, name, 'new'))).toEqual({ ...JSON.parse(text), [name]: 'new' });
          const { [name]: _, ...rest } = JSON.parse(text);
          expect(JSON.parse(editMember(text, name, null))).toEqual(rest);
        },
      ),
    );
  });

  it.each([
    [
      '{"model":"a","mod\\u0065l" : "b", "x":{"model":1}}',
      '{"model":"new","mod\\u0065l" : "new", "x":{"model":1}}',
    ],
    ['{ }', '{"model":"new" }'],
    ['{"x":"}\\\\\\"", "model":1.0 }', '{"x":"}\\\\\\"", "model":"new" }'],
  ])('of %s is replaced wherever it is named', (text, edited) => {
    expect(editMember(text, 'model', 'new')).toBe(edited);
  });

  it('of 100,000 equal names are all set and all removed', () => {
    const text = `{${Array.from({ length: 100_000 }, () => '"model":"a"').join(',')}}`;
    expect(editMember(text, 'model', null)).toBe('{}');
    expect(editMember(text, 'model', 'b')).toBe(text.replaceAll('"a"', '"b"'));
  });
});

describe('a service at another price', () => {
  const ask = (target: RunningInstance | undefined, protocol: Protocol, more: object) => {
    const { response, request } = exchanges.find((one) => one.protocol === protocol) ?? chat;
    const body = JSON.stringify({ ...(JSON.parse(request) as object), ...more });
    const input = { protocol, request: body, most_input_tokens: body.length };
    return level.ask(input, { garbage: response, contentType: 'application/json' }, target);
  };

  it.each<[Protocol, object]>([
    ['openai.chat', { service_tier: 'priority' }],
    ['openai.responses', { service_tier: 'fast' }],
    ['anthropic.messages', { speed: 'fast' }],
    ['anthropic.messages', { inference_geo: 'us' }],
  ])('is refused in %s: %j', async (protocol, more) => {
    const { status, body, request } = await ask(models[protocol], protocol, more);
    const [name = '', value] = Object.entries(more)[0] ?? [];
    expect([status, request]).toEqual([422, undefined]);
    expect(body).toMatchObject({
      error: expect.stringContaining(`/${name}: "${value}" has no price here`),
      cost_usd: 0,
    });
  });

  it.each<[Protocol, object]>([
    ['openai.chat', { service_tier: 'flex' }],
    ['openai.responses', { service_tier: null }],
    ['anthropic.messages', { service_tier: 'standard_only', speed: 'standard' }],
  ])('is none in %s with %j', async (protocol, more) => {
    expect((await ask(models[protocol], protocol, more)).status).toBe(200);
  });

  it('passes without prices, and where the file sets the field', async () => {
    const free = await level.start();
    expect((await ask(free, 'openai.chat', { service_tier: 'priority' })).status).toBe(200);
    const { file, part } = priced;
    const settings = { service_tier: 'priority' };
    const fast = await level.start({ file, part: { ...part, settings } });
    const answer = await ask(fast, 'openai.chat', { service_tier: 'priority' });
    expect([answer.status, answer.request?.body.service_tier]).toEqual([200, 'priority']);
    await Promise.all([free.stop(), fast.stop()]);
  });
});
