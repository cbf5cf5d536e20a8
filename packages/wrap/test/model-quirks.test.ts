/** Providers that deviate from the protocol: no part of an answer is lost, changed or repeated. */
import { gzipSync } from 'node:zlib';
import type { RunningInstance } from '@capstan/capability/lifecycle/start-instance';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ModelReply } from '../../../test/support/model-server.ts';
import { modelKey, priceAt } from '../../../test/support/wrapped-models.ts';
import { post } from '../../capability/test/support/capabilities.ts';
import { type ModelLevel, schema, startModelLevel, user } from './model-level.ts';
import { callInLines } from './support.ts';

let level: ModelLevel;
let claude: RunningInstance;
beforeAll(async () => {
  level = await startModelLevel();
  claude = await level.start({ ...priceAt(0.1, [3, 15]), kind: 'anthropic' });
});
afterAll(async () => {
  await claude.stop();
  await level.close();
});

type Json = Record<string, unknown>;

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

function event(data: object | string, name?: string): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return `${name === undefined ? '' : `event: ${name}\n`}data: ${text}\n\n`;
}

function chunk(delta: object, finish_reason: string | null = null, more: object = {}): string {
  return event({ model: 'small', choices: [{ index: 0, delta, finish_reason }], ...more });
}

const done = `${event({ model: 'small', choices: [], usage })}data: [DONE]\n\n`;

function chat(...deltas: readonly object[]): string {
  return `${deltas.map((delta) => chunk(delta)).join('')}${chunk({}, 'stop')}${done}`;
}

function tools(...pieces: readonly object[]): string {
  return chat(...pieces.map((piece) => ({ tool_calls: [piece] })));
}

/** Anthropic's events of one block. */
function message(block: object, ...deltas: readonly object[]): string {
  const events = [
    { type: 'message_start', message: { model: 'claude', usage: { input_tokens: 25, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 12 } },
    { type: 'message_stop' },
  ];
  return events.map((data) => event(data, data.type)).join('');
}

const asked = { ...user('a'), tools: [{ name: 'weather' }, { name: 'time' }] };

interface Told {
  readonly text: string;
  readonly calls: readonly Json[];
  readonly last: Json;
}

/** A streamed call: the parts in its lines, put together as OpenAI's clients do. */
async function tell(reply: ModelReply, input: object = asked, target = level.instance): Promise<Told> {
  level.provider.answer(() => reply);
  const lines = await callInLines(target, input, 'delta');
  let text = '';
  const calls: { id: string; type: string; function: { name: string; arguments: string } }[] = [];
  for (const { delta } of lines as { delta?: { content?: string; tool_calls?: typeof calls } }[]) {
    text += delta?.content ?? '';
    for (const piece of delta?.tool_calls ?? []) {
      const { index, ...call } = piece as unknown as { index: number } & (typeof calls)[number];
      if (calls[index] === undefined) calls[index] = call;
      else calls[index].function.arguments += call.function.arguments;
    }
  }
  return { text, calls, last: lines.at(-1) as Json };
}

const lineLimit = 16_384;

describe('a large piece', () => {
  const signs = ['x', '\u0001', '"', '电', '🎬', '\ud83c'];
  const written = (size: number, sign: string): string =>
    JSON.stringify({ city: sign.repeat(Math.ceil(size / sign.length)) });

  it.each([16_383, 16_384, 20_000, 300_000].flatMap((size) => signs.map((sign) => [size, sign] as const)))(
    'of %i signs %j reaches a caller that streams',
    async (size, sign) => {
      const args = written(size, sign);
      const content = sign.repeat(Math.ceil(size / sign.length));
      const piece = { index: 0, id: 'a', function: { name: 'weather', arguments: args } };
      const partial = { type: 'input_json_delta', partial_json: args };
      const block = { type: 'tool_use', id: 'a', name: 'weather', input: {} };
      const plays = [
        await tell({ garbage: tools(piece) }),
        await tell({ garbage: message(block, partial) }, asked, claude),
      ];
      for (const { calls, last } of plays) {
        expect(calls).toEqual([
          { id: 'a', type: 'function', function: { name: 'weather', arguments: args } },
        ]);
        expect(last).toMatchObject({ output: { tool_calls: calls } });
      }
      const { text, last } = await tell({ garbage: chat({ content }) });
      expect([text, (last.output as Json).text]).toEqual([content, content]);
    },
  );

  it('is cut into lines that the router reads, whatever they hold', async () => {
    const args = JSON.stringify({ city: '\u0001"\\'.repeat(20_000) });
    level.provider.answer(() => ({
      garbage: tools({ index: 0, id: 'a', function: { name: 'weather', arguments: args } }),
    }));
    const lines = await callInLines(level.instance, asked, 'delta');
    const told = lines.slice(0, -1).map((line) => Buffer.byteLength(`${JSON.stringify(line)}\n`));
    expect(Math.max(...told)).toBeLessThanOrEqual(lineLimit);
  });
});

describe('bytes', () => {
  const mixed = 'Grüße 🎬 电影剪辑 ภาพยนตร์ मूवी بودكاست ひらがな \u0000 "é" ';
  const whole = (content: string) =>
    JSON.stringify({ model: 'm', choices: [{ message: { content }, finish_reason: 'stop' }], usage });
  const anthropicWhole = (text: string) =>
    JSON.stringify({
      type: 'message',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    });
  const text = (content: string) =>
    message({ type: 'text', text: '' }, { type: 'text_delta', text: content });
  const forms: Record<string, [(content: string) => string, () => RunningInstance]> = {
    'a stream': [(content) => chat({ content }), () => level.instance],
    'a whole answer': [whole, () => level.instance],
    'a stream of Anthropic': [text, () => claude],
    'a whole answer of Anthropic': [anthropicWhole, () => claude],
  };

  it.each(Object.entries(forms))('of %s may be split anywhere', async (_name, [write, target]) => {
    for (const [content, each] of [[mixed.repeat(3), 1] as const, [mixed.repeat(21_000), 65_537] as const]) {
      const { text: told, last } = await tell({ garbage: write(content), each }, user('a'), target());
      const { output } = last as { output: Json };
      expect([told === content, output.text === content]).toEqual([true, true]);
    }
  });

  it('may be compressed, although this was not asked for', async () => {
    const garbage = gzipSync(chat({ content: mixed }));
    const { last } = await tell({ garbage, headers: { 'content-encoding': 'gzip' }, each: 7 });
    expect(last).toMatchObject({ output: { text: mixed } });
  });
});

describe('a call of a tool', () => {
  const called = (name: string, written: string) => ({ function: { name, arguments: written } });
  const oslo = '{"city":"Oslo"}';
  const bergen = '{"city":"Bergen"}';

  it.each<[string, string, readonly (readonly [string, string])[]]>([
    [
      'has an object as its arguments',
      tools({ index: 0, id: 'a', function: { name: 'weather', arguments: { city: 'Oslo' } } }),
      [['weather', oslo]],
    ],
    [
      'has a list as its arguments',
      tools({ index: 0, id: 'a', function: { name: 'weather', arguments: [1] } }),
      [['weather', '[1]']],
    ],
    [
      'has an object with a large number as its arguments',
      tools({ index: 0, id: 'a', function: { name: 'weather', arguments: { id: 7 } } }).replace(
        '7',
        '1234567890123456789',
      ),
      [['weather', '{"id":1234567890123456789}']],
    ],
    ['has no arguments', tools({ index: 0, id: 'a', function: { name: 'weather' } }), [['weather', '{}']]],
    ['has empty arguments', tools({ index: 0, id: 'a', ...called('weather', '') }), [['weather', '{}']]],
    [
      'has null as arguments',
      tools({ index: 0, id: 'a', function: { name: 'weather', arguments: null } }),
      [['weather', '{}']],
    ],
    [
      'shares its index, without ids',
      tools(
        { index: 0, id: '', ...called('weather', oslo) },
        { index: 0, id: '', ...called('time', '{"tz":"UTC"}') },
      ),
      [
        ['weather', oslo],
        ['time', '{"tz":"UTC"}'],
      ],
    ],
    [
      'shares its index and its name, without ids',
      tools({ index: 0, ...called('weather', oslo) }, { index: 0, ...called('weather', bergen) }),
      [
        ['weather', oslo],
        ['weather', bergen],
      ],
    ],
    [
      'has no index, no id and the name of the one before',
      tools(called('weather', oslo), called('weather', bergen)),
      [
        ['weather', oslo],
        ['weather', bergen],
      ],
    ],
    [
      'shares its id with another one',
      tools(
        { index: 0, id: 'a', ...called('weather', oslo) },
        { index: 1, id: 'a', ...called('time', '{}') },
      ),
      [
        ['weather', oslo],
        ['time', '{}'],
      ],
    ],
    [
      'repeats its name in each piece, without an id',
      tools({ index: 0, ...called('weather', '{"city":') }, { index: 0, ...called('weather', '"Oslo"}') }),
      [['weather', oslo]],
    ],
    [
      'has pieces between those of another one',
      tools(
        { index: 0, id: 'a', ...called('weather', '') },
        { index: 1, id: 'b', ...called('time', '') },
        { index: 0, function: { arguments: '{"city":' } },
        { index: 1, function: { arguments: '{}' } },
        { index: 0, function: { arguments: '"Oslo"}' } },
      ),
      [
        ['weather', oslo],
        ['time', '{}'],
      ],
    ],
  ])('that %s is whole', async (_name, garbage, expected) => {
    const { calls, last } = await tell({ garbage });
    expect(calls.map(({ function: named }) => Object.values(named as Json))).toEqual(expected);
    expect(last).toMatchObject({ ok: true, output: { tool_calls: calls } });
    const ids = calls.map(({ id }) => String(id));
    expect(new Set(ids).size).toBe(calls.length);
    for (const id of ids) expect(id).toMatch(/^[\w-]{1,40}$/);
  });

  it.each([
    [
      'is an object at once',
      { type: 'tool_use', id: 'a', name: 'weather', input: { city: 'Oslo' } },
      [],
      oslo,
    ],
    ['has no arguments', { type: 'tool_use', id: 'a', name: 'weather', input: {} }, [], '{}'],
    [
      'comes in pieces',
      { type: 'tool_use', id: 'a', name: 'weather', input: {} },
      ['', '{"city":', '"Oslo"}'],
      oslo,
    ],
  ] as const)('of Anthropic that %s is whole', async (_name, block, pieces, expected) => {
    const deltas = pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json }));
    const { calls, last } = await tell({ garbage: message(block, ...deltas) }, asked, claude);
    expect(calls).toEqual([
      { id: 'a', type: 'function', function: { name: 'weather', arguments: expected } },
    ]);
    expect(last).toMatchObject({ output: { tool_calls: calls } });
  });

  it('goes to Anthropic with the numbers that the model wrote', async () => {
    const written = '{"order_id":1234567890123456789,"ratio":1.50}';
    const call = { id: 'a', type: 'function', function: { name: 'weather', arguments: written } };
    const messages = [
      { role: 'user', content: 'a' },
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: 'rain' },
    ];
    const { request } = await level.ask({ messages }, { text: 'x' }, claude);
    expect(request?.text).toContain('"input":{"order_id":1234567890123456789,"ratio":1.5}');
  });

  it('without a name is an error', async () => {
    const { status, body } = await level.ask(asked, {
      garbage: tools({ index: 0, function: { arguments: '{}' } }),
    });
    expect([status, body.error]).toEqual([502, 'the provider calls a tool without its name']);
  });

  it.each([
    ['openai', 'x'.repeat(41), /^call_[0-9a-f]{24}$/],
    ['openai', 'functions.weather:0', /^functions\.weather:0$/],
    ['anthropic', 'functions.weather:0', /^call_[0-9a-f]{24}$/],
    ['anthropic', 'toolu_1', /^toolu_1$/],
  ] as const)('goes to %s with the id %s as it takes it', async (kind, id, expected) => {
    const messages = [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: '' } }],
      },
      { role: 'tool', tool_call_id: id, content: 'rain' },
    ];
    const { request } = await level.ask(
      { messages },
      { text: 'x' },
      kind === 'openai' ? level.instance : claude,
    );
    const sent = JSON.stringify(request?.body.messages);
    const ids = [...sent.matchAll(/"(?:id|tool_call_id|tool_use_id)":"([^"]+)"/g)].map(([, seen]) => seen);
    expect(ids).toEqual([expect.stringMatching(expected), ids[0]]);
    expect(sent).toMatch(kind === 'openai' ? '"arguments":"{}"' : '"input":{}');
  });
});

describe('the end of an answer', () => {
  it.each([
    ['max_tokens', 'length'],
    ['MAX_TOKENS', 'length'],
    ['eos', 'stop'],
    ['SAFETY', 'content_filter'],
    ['refusal', 'content_filter'],
    ['something_new', 'other'],
    ['constructor', 'other'],
  ])('%s is %s', async (word, finish_reason) => {
    const garbage = `${chunk({ content: 'cut of' })}${chunk({}, word)}${done}`;
    expect((await level.ask(user('a'), { garbage })).body.output).toMatchObject({
      text: 'cut of',
      finish_reason,
    });
  });

  it.each([
    ['as its reason', chunk({}, 'error'), /an error as the end/],
    [
      'in a choice',
      event({ choices: [{ delta: {}, finish_reason: 'error', error: { code: 502, message: 'gone' } }] }),
      /gone/,
    ],
    ['in a chunk', event({ error: { message: 'upstream exploded', code: 500 } }), /upstream exploded/],
    ['as a text in a chunk', event({ error: 'upstream exploded' }), /upstream exploded/],
    ['as an event', event({ message: 'upstream exploded' }, 'error'), /upstream exploded/],
  ])('is an error %s, after half of the answer', async (_name, end, error) => {
    const { status, body } = await level.ask(user('a'), {
      garbage: `${chunk({ content: 'half' })}${end}${done}`,
    });
    expect([status, body.error]).toEqual([502, expect.stringMatching(error)]);
  });

  it.each([
    ['an error of rate', { message: 'slow down', code: 429 }, 503, { status: 429 }],
    ['an overload', { message: 'Overloaded', type: 'overloaded_error' }, 503, { status: 529 }],
    ['a used-up quota', { message: 'pay', type: 'insufficient_quota' }, 502, { status: 429 }],
    ['a long question', { message: 'long', code: 'context_length_exceeded' }, 422, { status: 400 }],
    ['a name of another kind', { message: 'odd', type: 'constructor' }, 502, { status: 502 }],
  ])('is %s inside an answer that began as a success', async (_name, error, status, read) => {
    const { body, ...answer } = await level.ask(user('a'), { garbage: event({ error }) });
    const { code, ...words } = error as { code?: unknown };
    const named = typeof code === 'string' ? { code } : {};
    expect([answer.status, Reflect.get(body, 'provider')]).toEqual([status, { ...words, ...named, ...read }]);
  });

  it('is a refusal of a thread, with the code by which libraries continue without it', async () => {
    const error = { message: 'no', details: { error_code: 'thread_not_found' } };
    const { body } = await level.ask(user('a'), { status: 400, body: { type: 'error', error } }, claude);
    expect(Reflect.get(body, 'provider')).toEqual({
      status: 400,
      message: 'no',
      code: 'thread_not_found',
      more: { details: { error_code: 'thread_not_found' } },
    });
  });

  it.each([
    [{ 'retry-after-ms': '1500' }, '2'],
    [{ 'retry-after': '7', 'retry-after-ms': 'soon' }, '7'],
  ] as const)('is a refusal for the time in %j', async (headers, seconds) => {
    level.provider.answer(() => ({ status: 429, headers }));
    const answer = await post(`${level.instance.endpoint}/exec`, JSON.stringify(user('a')));
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, seconds]);
    await answer.text();
  });

  it.each(['data: [DONE]\n\n', 'data: [DONE] \n\n'])('is %j, whatever the connection does', async (end) => {
    const garbage = `${chunk({ content: 'Hello' })}${chunk({}, 'stop', { usage })}${end}`;
    const { body } = await level.ask(user('a'), { garbage, staysOpen: true });
    expect(body.output).toMatchObject({ text: 'Hello', usage: { input_tokens: 10, output_tokens: 5 } });
    const { last } = await tell(
      { garbage: message({ type: 'text', text: 'Hi' }), staysOpen: true },
      user('a'),
      claude,
    );
    expect(last).toMatchObject({ output: { text: 'Hi' } });
  });

  it.each([
    ['nothing at all', 'hang' as const],
    ['half an answer', { garbage: chunk({ content: 'half' }), staysOpen: true }],
  ])('is a silence after %s', async (_name, reply) => {
    const impatient = await level.start({ part: { idle_timeout: '100ms' } });
    const { status, body } = await level.ask(user('a'), reply, impatient);
    await impatient.stop();
    expect([status, body.error]).toEqual([502, expect.stringMatching(/was silent for 0\.1 s$/)]);
  });

  it.each([
    [
      'its limit, spent on thoughts',
      chunk({ reasoning_content: 'hm' }) + chunk({}, 'length') + done,
      'length',
    ],
    ['a stop', chunk({ content: '' }) + chunk({}, 'stop') + done, 'stop'],
    ['a filter', chunk({ content: '' }) + chunk({}, 'content_filter') + done, 'content_filter'],
  ])('may come before the first word, by %s', async (_name, garbage, finish_reason) => {
    const { status, body } = await level.ask(user('a'), { garbage });
    expect([status, body.output]).toMatchObject([200, { text: '', finish_reason, cost_usd: 0.000_03 }]);
  });

  it('may be a refusal, whose text is the answer', async () => {
    const { body } = await level.ask(
      { ...user('a'), response_schema: schema },
      { garbage: chat({ refusal: 'I cannot.' }) },
    );
    expect(body.output).toMatchObject({ text: 'I cannot.', finish_reason: 'content_filter' });
  });
});

describe('events', () => {
  const hello = chunk({ content: 'Hel' }) + chunk({ content: 'lo' }) + chunk({}, 'stop', { usage });
  it.each<[string, string, string?]>([
    ['without data', `data: \n\n${hello}data:\n\n${done}`],
    ['to keep the connection', `: PROCESSING\n\nevent: ping\ndata: ping\n\n${hello}${done}`],
    ['that end by CR alone', `${hello}${done}`.replaceAll('\n', '\r')],
    ['without blank lines', `${hello}${done}`.replaceAll('\n\n', '\n')],
    ['whose last line has no end', hello.trimEnd()],
    [
      'with error: null',
      chunk({ content: 'Hello' }, null, { error: null }) + chunk({}, 'stop', { error: null }) + done,
    ],
    ['as text/plain', hello + done, 'text/plain'],
    ['with a mark of byte order', `\ufeff${hello}${done}`],
    [
      'with content in parts',
      chunk({ content: [{ type: 'thinking', thinking: [] }] }) +
        chat({ content: [{ type: 'text', text: 'Hello' }] }),
    ],
  ])('%s are read', async (_name, garbage, contentType = 'text/event-stream') => {
    for (const each of [garbage.length * 4, 1]) {
      const { text, last } = await tell({ garbage, contentType, each }, user('a'));
      expect([text, last]).toMatchObject(['Hello', { output: { text: 'Hello' } }]);
    }
  });
});

describe('JSON by a schema', () => {
  const open = { ...user('a'), response_schema: { type: 'object' } };

  it.each([
    ['a large number', '{"id": 9007199254740993, "ratio": 1.0}'],
    ['spaces', ' { "id" : 7 } '],
  ])('with %s is sent as it was checked', async (_name, written) => {
    const { text, last } = await tell({ garbage: chat({ content: written }) }, open);
    expect([text, (last.output as Json).text]).toEqual([written, written]);
  });

  it('keeps its numbers in the value too', async () => {
    level.provider.answer(() => ({ text: '{"id": 9007199254740993}' }));
    const answer = await post(`${level.instance.endpoint}/exec`, JSON.stringify(open));
    expect(await answer.text()).toContain('"json":{"id":9007199254740993}');
  });

  it('is streamed as the result has it, in pieces of any size, with a code block around it or not', async () => {
    const bodies = ['{"id": 7}', '{"a": "```", "b": "` ``"}', '[1,\n2]\n', '"x"', '{"a":"\\n```\\n"}'];
    const fences = [
      (text: string) => text,
      (text: string) => `\`\`\`json\n${text}\n\`\`\``,
      (text: string) => ` \n\`\`\`\n${text}\`\`\` \n`,
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...bodies),
        fc.constantFrom(...fences),
        fc.integer({ min: 1, max: 9 }),
        async (body, wrap, size) => {
          const pieces = wrap(body).match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
          const garbage = chat(...pieces.map((content) => ({ content })));
          const { text, last } = await tell({ garbage }, { ...user('a'), response_schema: {} });
          const { output } = last as { output: { text: string; json: unknown } };
          expect(text).toBe(output.text);
          expect(JSON.parse(text)).toEqual(JSON.parse(body));
          expect(output.json).toEqual(JSON.parse(body));
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe('an error answer', () => {
  const used = { prompt_tokens: 1_000, completion_tokens: 4_096, total_tokens: 5_096 };
  const spent = { usage: { input_tokens: 1_000, output_tokens: 4_096 }, cost_usd: 0.013_788 };
  const cut = chunk({ content: '{"rate": 7, "na' }) + chunk({}, 'length', { usage: used });
  const wrong =
    chunk({ content: '{"rate": "seven"}' }) + chunk({}, 'stop') + event({ choices: [], usage: used });

  it.each([
    ['the limit cuts its JSON', cut],
    ['its JSON does not match', wrong],
    [
      'the provider closes it with an error',
      chunk({ content: 'half' }) + chunk({}, 'error') + event({ choices: [], usage: used }),
    ],
  ])('carries what was used when %s, streamed or not', async (_name, garbage) => {
    const input = { ...user('a'), response_schema: schema };
    const { last } = await tell({ garbage }, input);
    const { status, body } = await level.ask(input, { garbage });
    expect(last).toMatchObject({ ok: false, ...spent });
    expect([body, status]).toMatchObject([spent, last.status]);
  });

  it('of several answers carries the tokens of all', async () => {
    level.provider.answer(() => ({ garbage: wrong }));
    const small = await level.start(priceAt(1, [1.5, 3]));
    const { body } = await level.ask(user('a'), { text: 'x' }, small);
    expect(body.ok).toBe(true);
    level.provider.answer(() => ({ garbage: wrong }));
    const answer = await post(
      `${small.endpoint}/exec`,
      JSON.stringify({ ...user('a'), response_schema: schema, n: 2 }),
    );
    expect(await answer.json()).toMatchObject({
      usage: { input_tokens: 2_000, output_tokens: 8_192 },
      cost_usd: 0.027_576,
    });
    await small.stop();
  });

  it.each([
    ['the provider breaks off', { cut: 'half an answer' }],
    ['the answer has not ended', { text: 'half', finish: null, usage: [10, 5] as const }],
  ])('has no cost where the cost is unknown: %s', async (_name, reply) => {
    const { body } = await level.ask(user('a'), reply);
    expect([body.ok, Object.hasOwn(body, 'cost_usd')]).toEqual([false, false]);
  });

  it('has no cost for half an answer of Anthropic, which has counted its first token', async () => {
    const [start] = message({ type: 'text', text: 'half' }).split('event: content_block_stop');
    const { status, body } = await level.ask(user('a'), { garbage: start ?? '' }, claude);
    expect([status, Object.hasOwn(body, 'cost_usd')]).toEqual([502, false]);
  });

  it.each([400, 401, 429, 500])(
    'costs nothing when the provider refuses by %i, and has the words of the provider',
    async (status) => {
      const error = { message: `no ${modelKey}`, type: 'some_error', code: 'some_code', param: 'messages' };
      const { body } = await level.ask(user('a'), { status, body: { error } });
      expect(body).toMatchObject({ cost_usd: 0, provider: { ...error, status, message: 'no ***' } });
    },
  );
});

it('a question of an agent has hundreds of tools, and more stops than some providers take', async () => {
  const names = Array.from(
    { length: 300 },
    (_, at) => `mcp__a-server-with-a-long-name__tool_number_${at}_with_a_long_name`,
  );
  const stop = ['a', 'b', 'c', 'd', 'e'];
  const input = { ...user('a'), tools: names.map((name) => ({ name })), stop };
  const free = await level.start({ kind: 'anthropic' });
  const { status, request } = await level.ask(input, { text: 'x' }, free);
  await free.stop();
  const { tools, stop_sequences }: Json = { ...request?.body };
  expect([status, stop_sequences]).toEqual([200, stop]);
  expect(tools).toEqual(names.map((name) => expect.objectContaining({ name })));
});

describe('a provider with limits', () => {
  it('without streams is asked for whole answers', async () => {
    const whole = await level.start({ part: { settings: { stream: null }, idle_timeout: '1ms' } });
    const { body, request } = await level.ask(user('a'), { text: 'Hello' }, whole);
    await whole.stop();
    expect(body.output).toMatchObject({ text: 'Hello' });
    expect(request?.body).not.toHaveProperty('stream');
    expect(request?.body).not.toHaveProperty('stream_options');
  });

  it('without options of streams is asked without them', async () => {
    const plain = await level.start({ part: { settings: { stream_options: null } } });
    const { request } = await level.ask(user('a'), { text: 'Hello' }, plain);
    await plain.stop();
    expect(request?.body.stream).toBe(true);
    expect(request?.body).not.toHaveProperty('stream_options');
  });

  it('with a version in its address is asked with that', async () => {
    const versioned = await level.start({ url: `${level.provider.url}/?api-version=2024-10-21` });
    const { status, request } = await level.ask(user('a'), { text: 'Hello' }, versioned);
    await versioned.stop();
    expect([status, request?.path]).toEqual([200, '/v1/chat/completions?api-version=2024-10-21']);
  });

  it('with another header for its key is asked with that', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the file
    const other = await level.start({ part: { headers: { 'api-key': '${MODEL_KEY}' } } });
    const { request } = await level.ask(user('a'), { text: 'Hello' }, other);
    await other.stop();
    expect(request?.headers['api-key']).toBe(modelKey);
  });
});
