/** The AI SDK with its provider for OpenAI's form, changed in nothing but address and key. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, embedMany, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let provider: ModelServer;
let models: ReturnType<typeof createServedModels>;
let capstan: ReturnType<typeof createOpenAICompatible>;

beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false;
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
  models = createServedModels(api, provider);
  capstan = createOpenAICompatible({
    name: 'capstan',
    baseURL: `${api.url}/openai/v1`,
    apiKey: api.apiKey,
    includeUsage: true,
  });
  for (const name of ['model.fast', 'embed.small']) await models.start(name);
});
beforeEach(() => provider.answer(() => ({ text: 'Hello, world', usage: [1_000, 500] })));
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

const png = Buffer.from('iVBORw0KGgo=', 'base64');

test('a text comes whole, with its usage', async () => {
  const { text, usage, finishReason } = await generateText({ model: capstan('fast'), prompt: 'Hi' });
  expect([text, usage.totalTokens, finishReason]).toEqual(['Hello, world', 1_500, 'stop']);
});

test('a text comes in parts, with its usage', async () => {
  const result = streamText({ model: capstan('fast'), prompt: 'Hi' });
  const parts: string[] = [];
  for await (const part of result.textStream) parts.push(part);
  expect(parts.length).toBeGreaterThan(1);
  expect([parts.join(''), (await result.usage).totalTokens]).toEqual(['Hello, world', 1_500]);
});

test('a tool is called, and its result goes into a second turn', async () => {
  const call = { id: 'call_1', name: 'weather', arguments: '{"place":"Oslo"}' };
  provider.answer(({ body }) =>
    body.messages.some(({ role }) => role === 'tool')
      ? { text: 'Rain in Oslo' }
      : { text: '', toolCalls: [call], finish: 'tool_calls' },
  );
  const places: string[] = [];
  const weather = tool({
    description: 'The weather of a place.',
    inputSchema: jsonSchema<{ place: string }>({
      type: 'object',
      properties: { place: { type: 'string' } },
      required: ['place'],
    }),
    execute: ({ place }) => {
      places.push(place);
      return { weather: 'rain' };
    },
  });
  const ask = { model: capstan('fast'), prompt: 'Weather?', tools: { weather }, stopWhen: stepCountIs(2) };
  expect((await generateText(ask)).text).toBe('Rain in Oslo');
  const stream = streamText(ask);
  await stream.consumeStream();
  expect([await stream.text, places]).toEqual(['Rain in Oslo', ['Oslo', 'Oslo']]);
  expect(provider.requests.at(-1)?.body.messages).toMatchObject([
    { role: 'user' },
    { role: 'assistant', tool_calls: [{ id: 'call_1' }] },
    { role: 'tool', tool_call_id: 'call_1' },
  ]);
});

test('a picture reaches the model', async () => {
  const content = [
    { type: 'text' as const, text: 'What is this?' },
    { type: 'image' as const, image: png, mediaType: 'image/png' },
  ];
  await generateText({ model: capstan('fast'), messages: [{ role: 'user', content }] });
  expect(provider.requests.at(-1)?.body.messages[0]?.content).toEqual([
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
  ]);
});

test('texts become vectors', async () => {
  provider.answer(() => ({ vectors: (text) => [text.length, 0.5], tokens: 7 }));
  const { embeddings, usage } = await embedMany({
    model: capstan.embeddingModel('small'),
    values: ['a', 'hello'],
  });
  expect([embeddings, usage.tokens]).toEqual([
    [
      [1, 0.5],
      [5, 0.5],
    ],
    7,
  ]);
});

test('an error has its status and its message', async () => {
  const error = await generateText({ model: capstan('fats'), prompt: 'Hi', maxRetries: 0 }).catch(
    (thrown: unknown) => thrown,
  );
  expect(APICallError.isInstance(error)).toBe(true);
  expect(error).toMatchObject({ statusCode: 404, message: expect.stringContaining('model.fast') });
});

test('a cancelled request is cancelled at the provider', async () => {
  provider.answer(() => 'hang');
  const before = provider.requests.length;
  const stop = new AbortController();
  const asked = generateText({ model: capstan('fast'), prompt: 'Hi', abortSignal: stop.signal });
  const ended = expect(asked).rejects.toThrow();
  await waitFor('the provider to be asked', () => provider.requests.length > before);
  stop.abort();
  await ended;
  await waitFor('the request to be cancelled', () => provider.requests.at(-1)?.isAborted === true);
});
