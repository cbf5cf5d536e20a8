/** Requests of clients' protocols: as they came for an instance that speaks them, else with a word on what is left out. */
import type { ServerResponse } from 'node:http';
import type { Decision } from '@capstan/core/contracts/decision';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import type { Capstan } from '../support/capstan.ts';
import { registerInstance } from '../support/direct-calls.ts';
import { answer, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let native: Instance;
let other: Instance;
let chatOnly: Instance;
const cost_model = {
  type: 'per_call',
  rate_usd: 1,
  worst_case: '{{ (input.most_input_tokens ?? (input | tokens)) * 0.0001 }}',
};
const paid = { cost_model, settle: 'reported', tags: [] } as const;
const said = { text: 'Hello', cost_usd: 0.001, usage: { input_tokens: 3, output_tokens: 2 } };

beforeAll(async () => {
  api = await startTestApi();
  const protocols = ['anthropic.messages', 'openai.chat'];
  native = await registerInstance(api, { name: 'model.both', protocols, ...paid });
  other = await registerInstance(api, { name: 'model.both', ...paid });
  chatOnly = await registerInstance(api, {
    name: 'model.other',
    input: { type: 'object', properties: { reasoning_effort: {} } },
  });
});
beforeEach(() => {
  native.execs.length = 0;
  other.execs.length = 0;
  for (const one of [other, chatOnly]) one.handle = (_, response) => answer(response, 200, said);
});
afterAll(async () => {
  await Promise.all([native.stop(), other.stop(), chatOnly.stop()]);
  await api.close();
});

/** As a client writes it: spaces, a number that JavaScript cannot keep, fields of next year. */
const messagesBody = `{ "model":"both", "max_tokens": 50, "seed2": 12345678901234567890, "ratio": 1.0,
  "thinking": {"type":"enabled","budget_tokens":1024}, "context_management": {"edits":[{"type":"x"}]},
  "messages":[{"role":"user","content":[{"type":"text","text":"H\\u00e9","cache_control":{"type":"ephemeral"}}]}] }`;
const chatBody = `{"model": "both","max_completion_tokens":9,"n":2,"messages": [{"role":"user","content":"hi","x":1.50}]}`;
const protocols = [
  ['anthropic.messages', '/anthropic/v1/messages', messagesBody, { max_output_tokens: 50 }],
  ['openai.chat', '/openai/v1/chat/completions', chatBody, { max_output_tokens: 9, n: 2 }],
] as const;

function post(path: string, body: string, headers: Record<string, string> = {}) {
  return fetch(`${api.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api.apiKey}`, 'content-type': 'application/json', ...headers },
    body,
  });
}

function streamed(body: string): string {
  return body.replace('{', '{"stream":true,');
}

function inLines(...lines: object[]): Handler {
  return (_, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  };
}

describe.each(protocols)('%s, of an instance that speaks it', (protocol, path, body, limits) => {
  const response = `{ "id" : "x_1",\n "big": 12345678901234567890, "ratio": 1.0, "text":"\\u00e9" }`;
  const output = { protocol, response, usage: { input_tokens: 9, output_tokens: 4 }, cost_usd: 0.0042 };

  test('travels as it came, and so does the answer', async () => {
    native.handle = (_, answering) => answer(answering, 200, { ok: true, output });
    const headers = { 'anthropic-beta': 'a,b', 'anthropic-version': '2023-06-01', 'x-other': 'no' };
    const answered = await post(path, body, headers);
    expect(await answered.text()).toBe(response);
    expect(answered.headers.get('content-type')).toContain('application/json');
    expect([answered.headers.get('x-capstan-cost-usd'), answered.headers.get('x-capstan-dropped')]).toEqual([
      '0.0042',
      null,
    ]);
    const [exec] = native.execs;
    expect(exec?.input).toEqual({
      protocol,
      request: body,
      headers: { 'anthropic-beta': 'a,b', 'anthropic-version': '2023-06-01' },
      most_input_tokens: expect.any(Number),
      ...limits,
    });
    expect(exec?.headers['x-stream']).toBeUndefined();
    const id = answered.headers.get('x-capstan-decision');
    const [, decision] = await readJson<Decision>(api.call(`/v1/decisions/${id}`));
    // After a failure of the first, the other is tried before it, and may refuse a field.
    const refused = expect.toBeOneOf(['other_protocol', 'input_invalid']);
    expect(decision.candidates.map(({ verdict }) => verdict)).toEqual(['chosen', refused]);
    expect(decision.reserved_usd).toBeCloseTo(Number(exec?.input.most_input_tokens) * 0.0001);
  });

  test('counts what a model adds for tools only where it has some', async () => {
    native.handle = (_, answering) => answer(answering, 200, { ok: true, output });
    const tool =
      protocol === 'openai.chat'
        ? { type: 'function', function: { name: 'look', parameters: { type: 'object' } } }
        : { name: 'look', input_schema: { type: 'object' } };
    const tools = `"tools":[${JSON.stringify(tool)}],`;
    for (const field of ['', tools]) await (await post(path, body.replace('{', `{${field}`))).text();
    const [without = 0, withTools = 0] = native.execs.map(({ input }) => Number(input.most_input_tokens));
    expect(without).toBeLessThan(body.length + 100);
    expect(withTools - without).toBeGreaterThan(600);
    expect(withTools - without).toBeLessThan(650 + tools.length);
  });

  test.each([1, 3, 17, 400])('is streamed byte for byte, in pieces of %i characters', async (size) => {
    const events = `event: one\ndata: {"big": 12345678901234567890, "a": 1.0}\n\n: ping\n\ndata: {"text":"héllo 😀 ${'漢'.repeat(50)}"}\n\n`;
    const pieces = [...events].reduce<string[]>((all, char, at) => {
      if (at % size === 0) all.push('');
      all.push(`${all.pop() ?? ''}${char}`);
      return all;
    }, []);
    const { response: _, ...end } = output;
    native.handle = inLines(...pieces.map((piece) => ({ delta: { events: piece } })), {
      ok: true,
      output: end,
    });
    const answered = await post(path, streamed(body));
    expect(answered.headers.get('content-type')).toContain('text/event-stream');
    expect(await answered.text()).toBe(events);
    expect(native.execs[0]?.headers['x-stream']).toBe('delta');
    expect(native.execs[0]?.input.request).toBe(streamed(body));
  });

  test.each([
    ['an event', 'data: {"a":1}\n\n', 'data: {"a":1}\n\n'],
    ['half an event', 'data: {"a":', 'data: {"a":\n\n'],
  ])('that breaks after %s ends with an error of the protocol', async (_, events, told) => {
    native.handle = inLines({ delta: { events } }, { ok: false, status: 502, error: 'cut' });
    const text = await (await post(path, streamed(body))).text();
    expect(text.startsWith(told)).toBe(true);
    expect(text.slice(told.length)).toMatch(/^(?:event: error\n)?data: \{.*"error":.*cut.*\}\n\n$/);
  });

  test('is translated for another one when that one fails', async () => {
    native.handle = (_, answering) => answer(answering, 503, { ok: false, error: 'busy' });
    other.handle = (exec, answering) =>
      answer(answering, 200, exec.input.n === 2 ? { ...said, choices: [said, said] } : said);
    const neutral = body.replace('"n":2', '"n":1').replace('12345678901234567890', '1');
    const answered = await post(path, neutral);
    expect([answered.status, await answered.text()]).toEqual([200, expect.stringContaining('Hello')]);
    expect(other.execs[0]?.input).toMatchObject({ messages: [{ role: 'user' }] });
    expect(answered.headers.get('x-capstan-dropped')).toBe(
      protocol === 'openai.chat'
        ? 'messages[].x'
        : 'seed2, ratio, context_management, messages[].content[].cache_control, thinking',
    );
  });

  test('is not given to a call in the neutral form, or one that takes cached answers', async () => {
    native.handle = (_, answering) => answer(answering, 200, { ok: true, output });
    const direct = await api.call('/v1/capabilities/model.both/exec', { body: { input: { messages: [] } } });
    await direct.json();
    const exec = [...native.execs, ...other.execs].at(-1);
    expect(exec?.input).toEqual({ messages: [] });
    await post(path, body.replace('"n":2', '"n":1'), { 'x-capstan-cache': '60' });
    expect([...native.execs, ...other.execs].at(-1)?.input).toHaveProperty('messages');
  });
});

describe('a request that is translated', () => {
  const ask = (more: object, headers: Record<string, string> = {}) =>
    post(
      '/openai/v1/chat/completions',
      JSON.stringify({ model: 'other', messages: [{ role: 'user', content: 'hi' }], ...more }),
      headers,
    );

  test('names what the model did not get, also in a stream', async () => {
    const more = { foo: 1, wörter: 2, top_k: 3, reasoning_effort: 'low', stream: true };
    const answered = await ask(more);
    expect(await answered.text()).toContain('Hello');
    expect(answered.headers.get('x-capstan-dropped')).toBe('foo, w?rter, top_k');
    expect(chatOnly.execs.at(-1)?.input).toEqual({
      messages: [{ role: 'user', content: 'hi' }],
      reasoning_effort: 'low',
    });
  });

  test.each([
    [{ foo: 1 }, 'foo'],
    [{ messages: [{ role: 'user', content: 'hi', reasoning_content: 'x' }] }, 'messages[].reasoning_content'],
    [{ top_k: 3 }, 'top_k'],
  ])('is refused by a client that insists: %j', async (more, param) => {
    const before = chatOnly.execs.length;
    const answered = await ask(more, { 'x-capstan-strict': 'true' });
    expect([answered.status, await answered.json()]).toMatchObject([422, { error: { param } }]);
    expect(chatOnly.execs.length).toBe(before);
    expect((await ask({ reasoning_effort: 'low' }, { 'x-capstan-strict': 'true' })).status).toBe(200);
  });

  test('is refused by a strict project, whatever the client wants', async () => {
    const [, listed] = await readJson<{ items: { project_id: string; strict: boolean }[] }>(
      api.call('/v1/projects'),
    );
    const project_id = listed.items[0]?.project_id;
    expect(listed.items[0]?.strict).toBe(false);
    const insist = async (wanted: unknown) => {
      const path = `/v1/projects/${project_id}/settings`;
      const answered = await api.call(path, { method: 'PUT', body: { strict: wanted } });
      return [answered.status, await answered.json()];
    };
    const lax = { 'x-capstan-strict': 'false' };
    expect(await insist(true)).toMatchObject([200, { project_id, strict: true }]);
    for (const headers of [{}, lax]) {
      const answered = await ask({ foo: 1 }, headers);
      expect([answered.status, await answered.json()]).toMatchObject([422, { error: { param: 'foo' } }]);
      expect((await ask({ top_k: 3, stream: true }, headers)).status).toBe(422);
      expect((await ask({ reasoning_effort: 'low', user: 'u' }, headers)).status).toBe(200);
    }
    const system = [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }];
    const message = { model: 'other', max_tokens: 9, system, messages: [{ role: 'user', content: 'hi' }] };
    expect((await api.call('/anthropic/v1/messages', { body: message })).status).toBe(422);
    const response = { model: 'other', input: 'hi', store: false, truncation: 'auto' };
    expect((await api.call('/openai/v1/responses', { body: response })).status).toBe(422);
    const [, acts] = await readJson<{ items: object[] }>(api.call(`/v1/audit?subject=${project_id}`));
    expect(acts.items).toContainEqual(
      expect.objectContaining({ action: 'project.changed', data: { strict: true } }),
    );
    expect(await insist(false)).toMatchObject([200, { strict: false }]);
    for (const wanted of ['yes', null, undefined]) expect((await insist(wanted))[0]).toBe(422);
    expect((await ask({ foo: 1 }, lax)).headers.get('x-capstan-dropped')).toBe('foo');
  });

  test.each(['9007199254740993', '12345678901234567890.5', '0.12345678901234567890123'])(
    'is refused for the number %s, which would change',
    async (seed) => {
      const body = `{"model":"other","seed":${seed},"messages":[{"role":"user","content":"hi"}]}`;
      const answered = await post('/openai/v1/chat/completions', body);
      const refusal = { error: { param: 'seed', message: expect.stringContaining('the number ') } };
      expect([answered.status, await answered.json()]).toMatchObject([422, refusal]);
    },
  );

  test('is refused where an answer would be another one, unless an instance speaks the protocol', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
    const body = (model: string) =>
      JSON.stringify({ model, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }], tools });
    const refused = await post('/anthropic/v1/messages', body('other'));
    expect([refused.status, await refused.json()]).toMatchObject([
      422,
      { error: { param: 'tools[0].type' } },
    ]);
    const output = { protocol: 'anthropic.messages', response: '{"id":"m"}' };
    native.handle = (_, answering) => answer(answering, 200, { ok: true, output });
    expect(await (await post('/anthropic/v1/messages', body('both'))).json()).toEqual({ id: 'm' });
    native.handle = (_, answering) => answer(answering, 503, { ok: false, error: 'busy' });
    expect((await post('/anthropic/v1/messages', body('both'))).status).toBe(503);
    expect(other.execs).toEqual([]);
  });
});

describe('characters that cannot be stored', () => {
  const bodies = [String.raw`\u0000`, String.raw`a\uD83d`, String.raw`\ude00\uD83D`].map(
    (text) =>
      `{"model":"MODEL","max_tokens":9,"stop":["${text}"],"messages":[{"role":"user","content":"${text}"}]}`,
  );

  test.each(bodies)('reach an instance that speaks the protocol, and no other one: %s', async (body) => {
    const output = { protocol: 'openai.chat', response: '{"id":"m"}' };
    native.handle = (_, answering) => answer(answering, 200, { ok: true, output });
    const sent = body.replace('MODEL', 'both');
    expect((await post('/openai/v1/chat/completions', sent)).status).toBe(200);
    expect(native.execs.at(-1)?.input.request).toBe(sent);
    native.handle = (_, answering) => answer(answering, 503, { ok: false, error: 'busy' });
    expect((await post('/openai/v1/chat/completions', sent)).status).toBe(503);
    const before = chatOnly.execs.length;
    const refused = await post('/openai/v1/chat/completions', body.replace('MODEL', 'other'));
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { code: 'malformed_json' } },
    ]);
    expect([other.execs.length, chatOnly.execs.length]).toEqual([0, before]);
  });

  test.each([
    ['/openai/v1/chat/completions', { user: 'a\0' }, 422],
    ['/openai/v1/chat/completions', { model: 'both\0' }, 422],
    ['/openai/v1/responses', { input: 'hi', previous_response_id: '\0' }, 422],
    ['/anthropic/v1/messages', { max_tokens: 9, metadata: { user_id: '\0' } }, 422],
    ['/openai/v1/embeddings', { input: 'a\0', messages: undefined }, 400],
  ])('are refused where Capstan looks something up: %s %j', async (path, more, status) => {
    const body = { model: 'both', messages: [{ role: 'user', content: 'hi' }], ...more };
    expect((await post(path, JSON.stringify(body))).status).toBe(status);
  });
});

describe('a stream that loses parts', () => {
  const parts = (told: string) => [{ delta: { content: told } }];
  const stream = async () => {
    const body = JSON.stringify({
      model: 'other',
      stream: true,
      messages: [{ role: 'user', content: 'hi' }],
    });
    return (await post('/openai/v1/chat/completions', body)).text();
  };
  const long = 'x'.repeat(20_000);
  const tool_calls = [
    { id: 'c', type: 'function', function: { name: 'f', arguments: JSON.stringify({ long }) } },
  ];

  test('sends the rest at the end, also of a piece that was too long for a line', async () => {
    chatOnly.handle = inLines(...parts('Hel'), { ok: true, output: said });
    expect(await stream()).toContain('"content":"lo"');
    chatOnly.handle = inLines(
      { delta: { tool_calls: [{ index: 0, ...tool_calls[0] }] } },
      { ok: true, output: { text: '', tool_calls } },
    );
    expect(await stream()).toContain(long);
  });

  test('ends with an error where its parts differ from the result', async () => {
    chatOnly.handle = inLines(...parts('Help'), { ok: true, output: said });
    const text = await stream();
    expect(text).toContain('"code":"output_invalid"');
    expect(text).not.toContain('[DONE]');
  });
});

describe('for Anthropic’s clients', () => {
  test('models come in pages', async () => {
    const list = (query = '') =>
      readJson<{ data: { id: string }[]; has_more: boolean; last_id: string }>(
        api.call(`/anthropic/v1/models${query}`),
      );
    const [, all] = await list();
    expect(all).toMatchObject({
      data: [{ id: 'model.both', type: 'model' }, { id: 'model.other' }],
      has_more: false,
    });
    const [, first] = await list('?limit=1');
    expect(first).toMatchObject({ data: [{ id: 'model.both' }], has_more: true, last_id: 'model.both' });
    const [, next] = await list(`?limit=1&after_id=${first.last_id}`);
    expect(next).toMatchObject({ data: [{ id: 'model.other' }], has_more: false });
    const [, before] = await list('?limit=1&before_id=model.other');
    expect(before).toMatchObject({ data: [{ id: 'model.both' }], has_more: false });
    const [status, one] = await readJson(api.call('/anthropic/v1/models/both'));
    expect([status, one]).toMatchObject([200, { id: 'model.both', display_name: 'model.both' }]);
  });

  test.each([
    [{}, 1],
    [{ system: 'x'.repeat(3_000), tools: [{ name: 'f', input_schema: {} }] }, 1_000],
    [
      {
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'image',
                source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(1_000_000) },
              },
            ],
          },
        ],
      },
      1_000,
    ],
  ])('tokens are counted without a call', async (more, least) => {
    const before = native.execs.length + other.execs.length;
    const body = { model: 'both', messages: [{ role: 'user', content: 'hi' }], ...more };
    const [status, counted] = await readJson<{ input_tokens: number }>(
      api.call('/anthropic/v1/messages/count_tokens', { body }),
    );
    expect(status).toBe(200);
    expect(counted.input_tokens).toBeGreaterThanOrEqual(least);
    expect(counted.input_tokens).toBeLessThan(3 * least + 100);
    expect(native.execs.length + other.execs.length).toBe(before);
    const [unknown] = await readJson(
      api.call('/anthropic/v1/messages/count_tokens', { body: { ...body, model: 'x' } }),
    );
    expect(unknown).toBe(404);
  });

  test('many tools with long names work', async () => {
    const tools = Array.from({ length: 200 }, (_, at) => ({
      name: `${'m'.repeat(120)}_${at}`,
      input_schema: { type: 'object' },
    }));
    chatOnly.handle = (exec, response) => {
      const [first] = exec.input.tools as { name: string }[];
      answer(response, 200, {
        text: '',
        tool_calls: [{ id: 'c', type: 'function', function: { name: first?.name, arguments: '{}' } }],
      });
    };
    const body = { model: 'other', max_tokens: 9, tools, messages: [{ role: 'user', content: 'hi' }] };
    const [status, message] = await readJson<{ content: { name: string }[] }>(
      api.call('/anthropic/v1/messages', { body }),
    );
    expect([status, message.content.map(({ name }) => name)]).toEqual([200, [tools[0]?.name]]);
    const text = await (await api.call('/anthropic/v1/messages', { body: { ...body, stream: true } })).text();
    expect(text).toContain(`"name":"${tools[0]?.name}"`);
  });
});

describe('an instance whose spec the router has not read', () => {
  const request: Capstan['request'] = async (method, path, body) => {
    const answered = await api.call(path, { method, body });
    return { status: answered.status, headers: answered.headers, body: JSON.parse(await answered.text()) };
  };
  const tools = ',"tools":[{"type":"web_search_20250305","name":"web_search"}]';

  test.each([
    ['gets its first request as it came', 'unread.a', '', 200],
    ['gets one that cannot be translated', 'unread.b', tools, 200],
    ['and that does not speak the protocol gets a translation', 'unread.c', '', 200],
    ['and that does not speak the protocol gets nothing else', 'unread.d', tools, 503],
  ])('%s', async (_, name, more, status) => {
    const isSpeaker = status === 200 && !name.endsWith('c');
    const protocols = isSpeaker ? { protocols: ['anthropic.messages'] } : {};
    const unread = await startInstance(
      { request },
      { name: `model.${name}`, shared_with: 'all', ...protocols },
    );
    const output = { protocol: 'anthropic.messages', response: '{"id":"m"}' };
    unread.handle = (_exec, answering) => answer(answering, 200, isSpeaker ? { ok: true, output } : said);
    await api.refreshFleet();
    const body = `{"model":"${name}","max_tokens":9,"messages":[{"role":"user","content":"hi"}]${more}}`;
    const answered = await post('/anthropic/v1/messages', body);
    await answered.text();
    expect([answered.status, unread.execs.length]).toEqual([status, status === 200 ? 1 : 0]);
    if (status === 200) expect(unread.execs[0]?.input.request).toBe(isSpeaker ? body : undefined);
    await unread.stop();
  });
});

test('the instance shows its protocols', async () => {
  const [, { items }] = await readJson<{
    items: { instances: { endpoint: string; protocols?: string[] }[] }[];
  }>(api.call('/v1/capabilities'));
  const shown = items
    .flatMap(({ instances }) => instances)
    .filter(({ endpoint }) => endpoint === native.endpoint);
  expect(shown.map(({ protocols: spoken }) => spoken)).toEqual([['anthropic.messages', 'openai.chat']]);
  await waitFor('the other to be idle', () => other.execs.every(({ answered }) => answered));
});
