/** Wrapped models that speak the protocol of the client: through the router, everything is as on a direct connection. */
import type { CallContent } from '@capstan/core/contracts/call';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toConversation } from '../../packages/console/src/calls/conversation-model.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { type ModelReply, type ModelServer, startModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';
import { waitFor } from '../support/wait.ts';
import { priceAt } from '../support/wrapped-models.ts';

let api: TestApi;
let provider: ModelServer;
let models: ReturnType<typeof createServedModels>;

beforeAll(async () => {
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
  models = createServedModels(api, provider);
  const { file, part } = priceAt(0.1, [1, 2]);
  const protocols = ['openai.chat', 'openai.responses'];
  await models.start('model.chat', { file, part: { ...part, protocols } });
  await models.start('model.messages', { kind: 'anthropic', file, part });
});
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

function post(url: string, body: string) {
  const headers = { authorization: `Bearer ${api.apiKey}`, 'content-type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body });
}

/** What the last call has cost, once it is settled. */
function costOfLast(): Promise<number> {
  return waitFor('its cost', async () => {
    const rows = await api.db('attempt').orderBy('started_at', 'desc').limit(1).select('settled_nano');
    const [{ settled_nano = null } = {}] = rows;
    return settled_nano === null ? undefined : Number(settled_nano);
  });
}

interface Written {
  readonly capstan: string;
  readonly direct: string;
  /** Without the begin of the object and without the model. */
  readonly request: string;
  readonly model: string;
  readonly events: string;
  readonly whole: string;
}

const protocols: readonly (readonly [string, Written])[] = [
  [
    'openai.chat',
    {
      capstan: '/openai/v1/chat/completions',
      direct: '/chat/completions',
      model: 'chat',
      request: `"stream_options":{"include_usage":true}, "max_tokens":50,\n "seed": 12345678901234567890, "new":[1.0,"\\u00e9"], "messages":[{"role":"user","content":"hi","x":1e2}] }`,
      events: `: first\n\ndata: {"x":1.0,"choices":[{"index":0,"delta":{"content":"caf\\u00e9 😀","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":500}}\n\ndata: [DONE]\n\n`,
      whole: `{ "x":1.0,"model":"m","big":12345678901234567890,"choices":[{"message":{"content":"h"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":500}}`,
    },
  ],
  [
    'openai.responses',
    {
      capstan: '/openai/v1/responses',
      direct: '/responses',
      model: 'chat',
      request: `"max_output_tokens":50,"input":"hi", "store":false, "new" : 1.0}`,
      events: `event: response.created\ndata: {"type":"response.created","response":{"status":"in_progress","x":1.0}}\n\nevent: response.completed\ndata: {"type":"response.completed","response":{"status":"completed","output":[{}],"usage":{"input_tokens":1000,"output_tokens":500}}}\n\n`,
      whole: `{"id":"r", "x":1.0,"status":"completed","output":[{}],"usage":{"input_tokens":1000,"output_tokens":500}}`,
    },
  ],
  [
    'anthropic.messages',
    {
      capstan: '/anthropic/v1/messages',
      direct: '/messages',
      model: 'messages',
      request: `"max_tokens":50,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"r":1.50}`,
      events: `event: message_start\ndata: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":1000,"output_tokens":1}}}\n\nevent: ping\ndata: {"type": "ping"}\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq=="}}\n\nevent: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":500}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`,
      whole: `{"type":"message", "x":1.0,"model":"m","content":[{"type":"thinking","signature":"Eq=="}],"stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":500}}`,
    },
  ],
];

function write({ request }: Written, model: string, isStream: boolean): string {
  return `{ "model" :"${model}", ${isStream ? '"stream":true,' : ''}${request}`;
}

describe.each(protocols)('%s', (_, written) => {
  /** The request that the provider got and the answer that came, on both ways. */
  const compare = async (isStream: boolean, reply: ModelReply) => {
    provider.answer(() => reply);
    const direct = await post(`${provider.url}${written.direct}`, write(written, 'small', isStream));
    const expected = [await direct.text(), provider.requests.at(-1)?.text];
    const answered = await post(`${api.url}${written.capstan}`, write(written, written.model, isStream));
    expect([await answered.text(), provider.requests.at(-1)?.text]).toEqual(expected);
    return answered;
  };

  test('is whole as on a direct connection, and costs what its tokens cost', async () => {
    const answered = await compare(false, { garbage: written.whole, contentType: 'application/json' });
    expect(answered.headers.get('x-capstan-cost-usd')).toBe('0.002');
    const decision = await api.call(`/v1/decisions/${answered.headers.get('x-capstan-decision')}`);
    expect(await decision.json()).toMatchObject({
      candidates: [{ verdict: 'chosen', price_source: 'by hand' }],
    });
    expect(answered.headers.get('x-capstan-dropped')).toBeNull();
  });

  test.each([1, 13, 10_000])('is streamed as on a direct connection, in pieces of %i bytes', async (each) => {
    const answered = await compare(true, { garbage: written.events, each });
    expect(answered.headers.get('content-type')).toContain('text/event-stream');
    expect(await costOfLast()).toBe(2_000_000);
  });

  test('ends with one error where the provider breaks a stream with one', async () => {
    const event =
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"too busy"}}\n\n';
    const begin = written.events.slice(0, written.events.lastIndexOf('\n\n', written.events.length - 3) + 2);
    const first = begin.slice(0, begin.indexOf('\n\n') + 2);
    provider.answer(() => ({ garbage: first + event }));
    const answered = await post(`${api.url}${written.capstan}`, write(written, written.model, true));
    const text = await answered.text();
    expect(text.startsWith(first)).toBe(true);
    expect(text.match(/too busy/g)).toHaveLength(1);
  });
});

function eventsOf(all: readonly object[]): string {
  return all.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('');
}

const streams: readonly (readonly [string, string, object, string])[] = [
  [
    'openai.chat',
    '/openai/v1/chat/completions',
    {
      model: 'chat',
      max_completion_tokens: 50,
      stream_options: { include_usage: true },
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Weather?' },
      ],
      tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }],
    },
    eventsOf([
      { choices: [{ index: 0, delta: { role: 'assistant', content: 'One ' } }] },
      { choices: [{ index: 0, delta: { content: 'moment. ☔' } }] },
      ...['{"city":', '"Bonn"}'].map((text, at) => ({
        choices: [
          {
            index: 0,
            delta: {
              tool_calls: [
                {
                  index: 0,
                  id: 'c1',
                  function: { ...(at === 0 ? { name: 'weather' } : {}), arguments: text },
                },
              ],
            },
          },
        ],
      })),
      { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
      { choices: [], usage: { prompt_tokens: 1000, completion_tokens: 500 } },
    ]),
  ],
  [
    'openai.responses',
    '/openai/v1/responses',
    {
      model: 'chat',
      store: false,
      max_output_tokens: 50,
      instructions: 'Be brief.',
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'Weather?' }] }],
      tools: [{ type: 'function', name: 'weather', parameters: { type: 'object' } }],
    },
    eventsOf([
      { type: 'response.created', response: { status: 'in_progress' } },
      { type: 'response.output_item.added', output_index: 0, item: { type: 'message' } },
      { type: 'response.output_text.delta', output_index: 0, delta: 'One ' },
      { type: 'response.output_text.delta', output_index: 0, delta: 'moment. ☔' },
      {
        type: 'response.output_item.added',
        output_index: 1,
        item: { type: 'function_call', name: 'weather' },
      },
      { type: 'response.function_call_arguments.delta', output_index: 1, delta: '{"city":' },
      { type: 'response.function_call_arguments.delta', output_index: 1, delta: '"Bonn"}' },
      {
        type: 'response.completed',
        response: { status: 'completed', output: [{}], usage: { input_tokens: 1000, output_tokens: 500 } },
      },
    ]),
  ],
  [
    'anthropic.messages',
    '/anthropic/v1/messages',
    {
      model: 'messages',
      max_tokens: 50,
      system: 'Be brief.',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Weather?' }] }],
      tools: [{ name: 'weather', input_schema: { type: 'object' } }],
    },
    eventsOf([
      { type: 'message_start', message: { model: 'm', usage: { input_tokens: 1000, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'One ' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'moment. ☔' } },
      {
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'tool_use', id: 'c1', name: 'weather', input: {} },
      },
      ...['{"city":', '"Bonn"}'].map((partial_json) => ({
        type: 'content_block_delta',
        index: 1,
        delta: { type: 'input_json_delta', partial_json },
      })),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 500 } },
      { type: 'message_stop' },
    ]),
  ],
];

describe.each(streams)('the kept contents of a stream of %s', (_, path, request, events) => {
  beforeAll(() => keepContents(7));
  afterAll(() => keepContents(null));

  test.each([7, 10_000])('are a conversation, whatever its pieces: %i bytes', async (each) => {
    provider.answer(() => ({ garbage: events, each }));
    const answered = await post(`${api.url}${path}`, JSON.stringify({ ...request, stream: true }));
    expect(await answered.text()).toBe(events);
    const id = answered.headers.get('x-capstan-decision');
    const content = await waitFor('its contents', async () => {
      const [status, body] = await readJson<CallContent>(api.call(`/v1/calls/${id}/content`));
      return status === 200 ? body : undefined;
    });
    expect(toConversation(content)).toEqual({
      said: [
        { role: 'system', kind: 'text', text: 'Be brief.' },
        { role: 'user', kind: 'text', text: 'Weather?' },
        { role: 'assistant', kind: 'text', text: 'One moment. ☔' },
        { role: 'assistant', kind: 'tool call', name: 'weather', text: '{"city":"Bonn"}' },
      ],
      tools: ['weather'],
    });
  });
});

async function keepContents(content_days: number | null): Promise<void> {
  await api.call(`/v1/projects/${api.projectId}/settings`, { method: 'PUT', body: { content_days } });
}
