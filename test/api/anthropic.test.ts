/** Anthropic's own library, changed in nothing but address and key, on models behind the real router. */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { aLimitedProject } from '../support/direct-calls.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';
import { waitFor } from '../support/wait.ts';
import { priceAt } from '../support/wrapped-models.ts';

let api: TestApi;
let provider: ModelServer;
let client: Anthropic;
let models: ReturnType<typeof createServedModels>;

beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false;
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
  models = createServedModels(api, provider);
  client = new Anthropic({ baseURL: `${api.url}/anthropic`, apiKey: api.apiKey, maxRetries: 0 });
  const prices = priceAt(0.1, [1, 2]);
  await models.start('model.claude-large', prices);
});
beforeEach(() => provider.answer(() => ({ text: 'Hello, world', usage: [1_000, 500] })));
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

const hi = [{ role: 'user', content: 'Hi' }] as const satisfies Anthropic.MessageParam[];
const basics = { model: 'claude-large', max_tokens: 50 };

/** The library sends it, though its types have it no more. */
const plain: object = { temperature: 0 };

function clientOf({ authorization = '' }: Record<string, string>): Anthropic {
  const apiKey = authorization.replace('Bearer ', '');
  return new Anthropic({ baseURL: `${api.url}/anthropic`, apiKey, maxRetries: 0 });
}

function lastBody() {
  const request = provider.requests.at(-1);
  if (request === undefined) throw new Error('the provider was asked nothing');
  return request.body;
}

const weather: Anthropic.Tool = {
  name: 'weather',
  description: 'The weather of a place.',
  input_schema: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
};
const asked = { id: 'call_1', name: 'weather', arguments: '{"place":"Oslo"}' };
const used = { type: 'tool_use', id: 'call_1', name: 'weather', input: { place: 'Oslo' } } as const;

describe('the first event of a stream', () => {
  test.each<[what: string, Pick<Anthropic.MessageCreateParamsNonStreaming, 'messages' | 'system' | 'tools'>]>(
    [
      ['a question', { messages: hi }],
      [
        'a system and tools',
        { messages: hi, system: [{ type: 'text', text: '漢字'.repeat(400) }], tools: [weather] },
      ],
      [
        'an image',
        {
          messages: [
            {
              role: 'user',
              content: [
                {
                  type: 'image',
                  source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(40_000) },
                },
              ],
            },
          ],
        },
      ],
    ],
  )(
    'estimates the input tokens of %s as count_tokens does, and the last one has the right number',
    async (_, asking) => {
      const model = 'claude-large';
      const { input_tokens: estimate } = await client.messages.countTokens({ model, ...asking });
      const metadata = { user_id: 'someone' };
      const events = client.messages.stream({
        model,
        max_tokens: 4_000,
        metadata,
        stop_sequences: ['END'],
        ...asking,
      });
      const told: number[] = [];
      for await (const event of events) {
        if (event.type === 'message_start') told.push(event.message.usage.input_tokens);
        if (event.type === 'message_delta') told.push(event.usage.input_tokens ?? -1);
      }
      expect(estimate).toBeGreaterThan(0);
      expect(told).toEqual([estimate, 1_000]);
    },
  );
});

describe('a message', () => {
  test('comes with usage, cost and the decision that explains it', async () => {
    const { data, response } = await client.messages
      .create({
        ...basics,
        messages: hi,
        system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
        ...plain,
        stop_sequences: ['END'],
        metadata: { user_id: 'u1' },
      })
      .withResponse();
    expect(data).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: 'small',
      content: [{ type: 'text', text: 'Hello, world' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1_000, output_tokens: 500, cost_usd: 0.002 },
    });
    expect(response.headers.get('x-capstan-cost-usd')).toBe('0.002');
    const decision = await api.call(`/v1/decisions/${response.headers.get('x-capstan-decision')}`);
    expect(await decision.json()).toMatchObject({ capability: 'model.claude-large', reserved_usd: 0.000175 });
    expect(lastBody()).toMatchObject({
      messages: [{ role: 'system', content: 'Be brief.' }, ...hi],
      temperature: 0,
      max_tokens: 50,
      stop: ['END'],
    });
  });

  test('takes the key as a bearer too', async () => {
    const bearer = new Anthropic({
      baseURL: `${api.url}/anthropic`,
      authToken: api.apiKey,
      apiKey: null,
      maxRetries: 0,
    });
    const { content } = await bearer.messages.create({ ...basics, messages: hi });
    expect(content).toMatchObject([{ text: 'Hello, world' }]);
  });

  test('sees pictures, as data or by their address, and documents', async () => {
    const data = 'iVBORw0KGgo=';
    const content: Anthropic.ContentBlockParam[] = [
      { type: 'text', text: 'What is this?' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
      { type: 'image', source: { type: 'url', url: 'https://example.com/cat.png' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'A page.' } },
    ];
    await client.messages.create({ ...basics, messages: [{ role: 'user', content }] });
    expect(lastBody().messages[0]?.content).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
      { type: 'image_url', image_url: { url: 'https://example.com/cat.png' } },
      { type: 'text', text: 'A page.' },
    ]);
  });

  test('calls tools, and takes up what they answered in a second turn', async () => {
    provider.answer(() => ({ text: 'Let me see.', toolCalls: [asked], finish: 'tool_calls' }));
    const tools = [weather];
    const tool_choice = { type: 'any' } as const;
    const first = await client.messages.create({ ...basics, messages: hi, tools, tool_choice });
    expect([first.stop_reason, first.content]).toMatchObject(['tool_use', [{ text: 'Let me see.' }, used]]);
    expect(lastBody()).toMatchObject({
      tool_choice: 'required',
      tools: [{ type: 'function', function: { name: 'weather', parameters: weather.input_schema } }],
    });
    provider.answer(() => ({ text: 'Rain in Oslo' }));
    const picture = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } as const;
    const second = await client.messages.create({
      ...basics,
      tools,
      messages: [
        ...hi,
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'call_1',
              is_error: true,
              content: [
                { type: 'text', text: 'no radar' },
                { type: 'image', source: picture },
              ],
            },
            { type: 'text', text: 'So?' },
          ],
        },
      ],
    });
    expect(second.content).toMatchObject([{ text: 'Rain in Oslo' }]);
    expect(lastBody().messages).toMatchObject([
      ...hi,
      { role: 'assistant', content: 'Let me see.', tool_calls: [{ id: 'call_1' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'Error: no radar' },
      { role: 'user', content: [{ type: 'image_url' }, { type: 'text', text: 'So?' }] },
    ]);
  });

  test('is JSON of a schema where one is asked for', async () => {
    provider.answer(() => ({ text: '{"rate": 44100}' }));
    const schema = { type: 'object', properties: { rate: { type: 'integer' } } };
    const { content } = await client.messages.create({
      ...basics,
      messages: hi,
      output_config: { format: { type: 'json_schema', schema } },
    });
    expect(content).toMatchObject([{ type: 'text', text: '{"rate": 44100}' }]);
    expect(lastBody().response_format).toMatchObject({ type: 'json_schema', json_schema: { schema } });
  });
});

describe('a stream', () => {
  test('passes on each part when it comes, then usage and cost', async () => {
    const stream = client.messages.stream({ ...basics, messages: hi });
    const parts: string[] = [];
    stream.on('text', (part) => parts.push(part));
    const message = await stream.finalMessage();
    expect(parts.join('')).toBe('Hello, world');
    expect(parts.length).toBeGreaterThan(1);
    expect(message).toMatchObject({
      content: [{ type: 'text', text: 'Hello, world' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 1_000, output_tokens: 500 },
    });
  });

  test.each([
    ['with a text', () => ({ text: 'Hello, world' })],
    ['with a call of a tool alone', () => ({ text: '', toolCalls: [asked], finish: 'tool_calls' })],
    ['that breaks later', () => ({ cut: 'This is the beginning' })],
  ])('names the decision that explains it: one %s', async (_, say) => {
    provider.answer(say);
    const { data, response } = await client.messages
      .create({ ...basics, messages: hi, tools: [weather], stream: true })
      .withResponse();
    const decision = await api.call(`/v1/decisions/${response.headers.get('x-capstan-decision')}`);
    expect(await decision.json()).toMatchObject({ capability: 'model.claude-large' });
    data.controller.abort();
  });

  test('has a text and calls of tools in blocks, one after the other', async () => {
    const other = { id: 'call_2', name: 'weather', arguments: '' };
    provider.answer(() => ({ text: 'Let me see.', toolCalls: [asked, other], finish: 'tool_calls' }));
    const stream = client.messages.stream({ ...basics, messages: hi, tools: [weather] });
    const places: string[] = [];
    stream.on('streamEvent', (event) => {
      if ('index' in event && event.type !== 'content_block_delta')
        places.push(`${event.type} ${event.index}`);
    });
    const message = await stream.finalMessage();
    expect(message.content).toMatchObject([{ text: 'Let me see.' }, used, { id: 'call_2', input: {} }]);
    expect(message.stop_reason).toBe('tool_use');
    expect(places).toEqual(
      [0, 1, 2].flatMap((index) => [`content_block_start ${index}`, `content_block_stop ${index}`]),
    );
  });

  test('that breaks ends with an error', async () => {
    provider.answer(() => ({ cut: 'This is the beginning' }));
    const stream = client.messages.stream({ ...basics, messages: hi });
    await expect(stream.finalMessage()).rejects.toMatchObject({
      type: 'api_error',
      message: expect.stringMatching(/broke off|before it was complete/),
    });
  });

  test('without a reader ends the request to the provider, and is charged once', async () => {
    const { headers, projectId } = await aLimitedProject(api, 1);
    provider.answer(() => 'hang');
    const before = provider.requests.length;
    const stream = clientOf(headers).messages.stream({ ...basics, messages: hi });
    const gone = expect(stream.finalMessage()).rejects.toThrow(/abort/);
    const request = await waitFor('the provider to be asked', () => provider.requests[before]);
    stream.abort();
    await gone;
    await waitFor('the request to be cancelled', () => request.isAborted);
    const attempts = await waitFor('the charge', async () => {
      const rows = await api.db('attempt').where({ project_id: projectId }).select('state', 'settled_nano');
      return rows.every(({ settled_nano }) => settled_nano !== null) && rows.length > 0 ? rows : undefined;
    });
    expect(attempts.length).toBe(1);
    expect(provider.requests.length - before).toBe(1);
  });
});

describe('an error', () => {
  const errorOf = (more: object = {}, headers: Record<string, string> = {}, asking = client) =>
    asking.messages
      .create({ ...basics, messages: hi, ...more } as Anthropic.MessageCreateParamsNonStreaming, { headers })
      .then(
        () => null,
        (error: InstanceType<typeof Anthropic.APIError>) => error,
      );

  test('of a name that leads nowhere suggests the nearest', async () => {
    const error = await errorOf({ model: 'claude-larg' });
    expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    expect([error?.type, error?.error]).toMatchObject([
      'not_found_error',
      { type: 'error', error: { code: 'model_not_found', param: 'model' } },
    ]);
    expect(error?.message).toContain('model.claude-large');
  });

  test('of money is a refusal before anything is spent', async () => {
    const before = provider.requests.length;
    const { headers } = await aLimitedProject(api, 0.0001);
    const poor = await errorOf({ stream: true }, {}, clientOf(headers));
    expect([poor?.status, poor?.type, poor?.error]).toMatchObject([
      402,
      'billing_error',
      { error: { code: 'budget_exhausted' } },
    ]);
    const low = await errorOf({}, { 'X-Capstan-Ceiling-Usd': '0.0001' });
    expect(low?.error).toMatchObject({ error: { type: 'billing_error', code: 'ceiling_too_low' } });
    expect(provider.requests.length).toBe(before);
  });

  test.each<[object, string]>([
    [{ top_k: 'five' }, 'top_k'],
    [{ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, 'tools[0]'],
    [{ messages: [{ role: 'user', content: [{ type: 'video' }] }] }, 'messages[0]'],
    [{ stop_sequences: Array.from({ length: 33 }, (_, at) => String(at)) }, 'stop'],
  ])('of %j names the field', async (more, param) => {
    const error = await errorOf(more);
    expect([error?.status, error?.type]).toEqual([422, 'invalid_request_error']);
    expect(error?.error).toMatchObject({ error: { param: expect.stringContaining(param) } });
  });

  test('of a key, of a path and of the provider has the form that the library expects', async () => {
    const stranger = new Anthropic({ baseURL: `${api.url}/anthropic`, apiKey: 'cap_wrong', maxRetries: 0 });
    await expect(stranger.messages.create({ ...basics, messages: hi })).rejects.toBeInstanceOf(
      Anthropic.AuthenticationError,
    );
    const counting = client.messages.countTokens({ model: 'claude-unknown', messages: hi });
    await expect(counting).rejects.toMatchObject({ status: 404, type: 'not_found_error' });
    const lost = client.get('/v1/files');
    await expect(lost).rejects.toMatchObject({ status: 404, type: 'not_found_error' });
    provider.answer(() => ({ status: 429, headers: { 'retry-after': '7' } }));
    expect(await errorOf()).toMatchObject({ status: 429, type: 'rate_limit_error' });
  });
});

describe('a conversation that the provider would keep', () => {
  const body = { ...basics, messages: hi };

  test.each([{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }])(
    '%j is refused in the words by which libraries send all messages instead',
    async (thread) => {
      const count = provider.requests.length;
      const answer = await fetch(`${api.url}/anthropic/v1/messages`, {
        method: 'POST',
        headers: { 'x-api-key': api.apiKey, 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, thread }),
      });
      expect(await answer.json()).toMatchObject({
        error: {
          type: 'invalid_request_error',
          param: 'thread',
          details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
        },
      });
      expect(provider.requests).toHaveLength(count);
    },
  );
});
