/** OpenAI's own library, changed in nothing but address and key, on models behind the real router. */

import type { RunningInstance } from '@capstan/capability';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { aLimitedProject, registerInstance } from '../support/direct-calls.ts';
import { answer } from '../support/fleet.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';
import { waitFor } from '../support/wait.ts';
import { type ModelFile, priceAt } from '../support/wrapped-models.ts';

let api: TestApi;
let provider: ModelServer;
let client: OpenAI;
let models: ReturnType<typeof createServedModels>;

beforeAll(async () => {
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
  models = createServedModels(api, provider);
  client = new OpenAI({ baseURL: `${api.url}/openai/v1`, apiKey: api.apiKey, maxRetries: 0 });
  const prices = priceAt(0.1, [1, 2]);
  await start('model.fast');
  await start('model.gpt-large', prices);
});
beforeEach(() => provider.answer(() => ({ text: 'Hello, world', usage: [1_000, 500] })));
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

/** Its requests are translated. */
function start(name: string, { part, ...more }: Partial<ModelFile> = {}): Promise<RunningInstance> {
  const translated = name.startsWith('model.') ? { protocols: [] } : {};
  return models.start(name, { ...more, part: { ...translated, ...part } });
}

const hi = [{ role: 'user', content: 'Hi' }] as const satisfies OpenAI.ChatCompletionMessageParam[];

function lastRequest() {
  const request = provider.requests.at(-1);
  if (request === undefined) throw new Error('the provider was asked nothing');
  return request;
}

async function textOf(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
  return { chunks, text, last: chunks.at(-1) };
}

const weather: OpenAI.ChatCompletionFunctionTool = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather of a place.',
    parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
  },
};
const asked = { id: 'call_1', name: 'weather', arguments: '{"place":"Oslo"}' };

describe('a completion', () => {
  test('comes with usage, cost and the decision that explains it', async () => {
    const { data, response } = await client.chat.completions
      .create({ model: 'gpt-large', messages: hi, temperature: 0, max_tokens: 50, stop: 'END' })
      .withResponse();
    expect(data).toMatchObject({
      object: 'chat.completion',
      model: 'small',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello, world' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500, cost_usd: 0.002 },
    });
    expect(response.headers.get('x-capstan-cost-usd')).toBe('0.002');
    const decision = await api.call(`/v1/decisions/${response.headers.get('x-capstan-decision')}`);
    expect(await decision.json()).toMatchObject({ capability: 'model.gpt-large', reserved_usd: 0.000_134 });
    expect(lastRequest().body).toMatchObject({ temperature: 0, max_tokens: 50, stop: ['END'] });
  });

  test('is JSON of a schema where one is asked for', async () => {
    provider.answer(() => ({ text: '{"rate": 44100}' }));
    const completion = await client.chat.completions.create({
      model: 'model.fast',
      messages: hi,
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'rate', schema: { type: 'object', properties: { rate: { type: 'integer' } } } },
      },
    });
    expect(JSON.parse(completion.choices[0]?.message.content ?? '')).toEqual({ rate: 44_100 });
  });

  test('sees pictures, as data or by their address', async () => {
    const picture = 'data:image/png;base64,iVBORw0KGgo=';
    const images = [picture, 'https://example.com/cat.png'].map((url) => ({
      type: 'image_url' as const,
      image_url: { url },
    }));
    const content = [{ type: 'text' as const, text: 'What is this?' }, ...images];
    await client.chat.completions.create({ model: 'fast', messages: [{ role: 'user', content }] });
    expect(lastRequest().body.messages[0]?.content).toEqual(content);
  });

  test('may be larger than other requests, for its pictures', async () => {
    const url = `data:image/png;base64,${'A'.repeat(3_000_000)}`;
    const content = [{ type: 'image_url' as const, image_url: { url } }];
    const { choices } = await client.chat.completions.create({
      model: 'fast',
      messages: [{ role: 'user', content }],
    });
    expect(choices[0]?.message.content).toBe('Hello, world');
  });

  test('calls tools, and takes up what they answered in a second turn', async () => {
    provider.answer(() => ({ text: '', toolCalls: [asked], finish: 'tool_calls' }));
    const first = await client.chat.completions.create({ model: 'fast', messages: hi, tools: [weather] });
    const [choice] = first.choices;
    expect([choice?.finish_reason, choice?.message.tool_calls]).toEqual([
      'tool_calls',
      [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: asked.arguments } }],
    ]);
    expect(lastRequest().body.tools).toMatchObject([{ type: 'function', function: weather.function }]);
    provider.answer(() => ({ text: 'Rain in Oslo' }));
    const answered = { role: 'tool', tool_call_id: 'call_1', content: 'rain' } as const;
    const message = choice?.message as OpenAI.ChatCompletionMessage;
    const second = await client.chat.completions.create({
      model: 'fast',
      messages: [...hi, message, answered],
      tools: [weather],
    });
    expect(second.choices[0]?.message.content).toBe('Rain in Oslo');
    expect(lastRequest().body.messages).toMatchObject([{ role: 'user' }, { role: 'assistant' }, answered]);
  });
});

describe('several answers', () => {
  const texts = ['one', 'two', 'three'];
  const answerInTurn = (): void => {
    let turn = 0;
    provider.answer(() => ({ text: texts[turn++ % 3] ?? '', usage: [1_000, 500] }));
  };

  test('are choices of one call, with the cost of all', async () => {
    answerInTurn();
    const before = provider.requests.length;
    const { data, response } = await client.chat.completions
      .create({ model: 'gpt-large', messages: hi, n: 3, max_tokens: 50 })
      .withResponse();
    expect(data.choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(data.choices.map(({ message }) => message.content).toSorted()).toEqual(texts.toSorted());
    expect(data.usage).toMatchObject({ prompt_tokens: 3_000, completion_tokens: 1_500, cost_usd: 0.006 });
    expect(response.headers.get('x-capstan-cost-usd')).toBe('0.006');
    const requests = provider.requests.slice(before);
    expect(requests.map(({ body }) => [body.n, body.max_tokens])).toEqual(
      [1, 2, 3].map(() => [undefined, 50]),
    );
  });

  test('are streamed with the index of each', async () => {
    answerInTurn();
    const runner = client.chat.completions.stream({ model: 'fast', messages: hi, n: 3 });
    const { choices } = await runner.finalChatCompletion();
    expect(choices.map(({ index, finish_reason }) => [index, finish_reason])).toEqual([
      [0, 'stop'],
      [1, 'stop'],
      [2, 'stop'],
    ]);
    expect(choices.map(({ message }) => message.content).toSorted()).toEqual(texts.toSorted());
  });

  test('fail together, and the requests of the others end', async () => {
    let turn = 0;
    provider.answer(() => (turn++ === 1 ? { status: 400 } : 'hang'));
    const before = provider.requests.length;
    const failing = client.chat.completions.create({ model: 'fast', messages: hi, n: 3 });
    await expect(failing).rejects.toMatchObject({ status: 400, code: 'input_rejected' });
    const others = provider.requests.slice(before).filter((_, at) => at !== 1);
    await waitFor('the others to be cancelled', () => others.every(({ isAborted }) => isAborted));
  });

  test.each([
    ['a schema without the field', { type: 'object', properties: { messages: { type: 'array' } } }],
    [
      'a schema that names all its fields',
      { type: 'object', properties: { messages: {} }, additionalProperties: false },
    ],
  ])('are refused by %s before a claim', async (_name, input) => {
    const name = `model.alone-${Math.random().toString(36).slice(2)}`;
    const alone = await registerInstance(api, {
      name,
      input,
      cost_model: { type: 'per_call', rate_usd: 0.1 },
    });
    alone.handle = (_exec, response) => answer(response, 200, { ok: true, output: { text: 'one' } });
    const ask = (n: number) => client.chat.completions.create({ model: name, messages: hi, n });
    expect((await ask(1)).choices.length).toBe(1);
    const error = await ask(2).catch((thrown: InstanceType<typeof OpenAI.APIError>) => thrown);
    expect(error).toMatchObject({ status: 422, code: 'input_invalid', param: 'n' });
    expect(alone.execs.length).toBe(1);
    await alone.stop();
  });

  test('are not given where the price is that of one answer', async () => {
    await start('model.flat', priceAt(0.1));
    const asking = client.chat.completions.create({ model: 'flat', messages: hi, n: 2 });
    await expect(asking).rejects.toThrow(/n is 2/);
  });
});

describe('a stream', () => {
  test('passes on each part when it comes, then usage and cost', async () => {
    const stream = await client.chat.completions.create({
      model: 'gpt-large',
      messages: hi,
      stream: true,
      stream_options: { include_usage: true },
    });
    const { chunks, text, last } = await textOf(stream);
    expect(text).toBe('Hello, world');
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '' });
    expect(chunks.filter(({ choices }) => choices[0]?.delta.content).length).toBeGreaterThan(1);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop');
    expect(last?.usage).toMatchObject({ total_tokens: 1_500, cost_usd: 0.002 });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  test('has calls of tools in pieces that the library puts together', async () => {
    provider.answer(() => ({ text: 'Let me see.', toolCalls: [asked], finish: 'tool_calls' }));
    const runner = client.chat.completions.stream({ model: 'fast', messages: hi, tools: [weather] });
    const { message, finish_reason } = (await runner.finalChatCompletion()).choices[0] ?? {};
    expect([finish_reason, message?.content, message?.tool_calls?.[0]]).toMatchObject([
      'tool_calls',
      'Let me see.',
      { id: 'call_1', function: { name: 'weather', arguments: asked.arguments } },
    ]);
  });

  test('goes to another instance until its first part, and never after', async () => {
    const broken = await start('model.pair', { part: { model: 'broken' } });
    const sound = await start('model.pair', { ...priceAt(0.01), part: { model: 'sound' } });
    provider.answer(({ body }) => (body.model === 'broken' ? { status: 500 } : { text: 'whole' }));
    const ask = () => client.chat.completions.create({ model: 'pair', messages: hi, stream: true });
    expect((await textOf(await ask())).text).toBe('whole');
    await broken.stop();
    provider.answer(() => ({ cut: 'This is the beginning' }));
    const before = provider.requests.length;
    const stream = await ask();
    await expect(textOf(stream)).rejects.toThrow(/broke off|before it was complete/);
    expect(provider.requests.length - before).toBe(1);
    await sound.stop();
  });

  async function decisionOf(response: Response): Promise<unknown> {
    const read = await api.call(`/v1/decisions/${response.headers.get('x-capstan-decision')}`);
    return read.json();
  }

  test('names the decision that explains it, with its first part', async () => {
    const { data, response } = await client.chat.completions
      .create({ model: 'gpt-large', messages: hi, stream: true })
      .withResponse();
    expect(await decisionOf(response)).toMatchObject({ capability: 'model.gpt-large' });
    expect((await textOf(data)).text).toBe('Hello, world');
  });

  test('names the decision for the instance that answers, not for one that failed before', async () => {
    const broken = await start('model.twin', { part: { model: 'broken' } });
    const sound = await start('model.twin', { ...priceAt(0.01), part: { model: 'sound' } });
    provider.answer(({ body }) => (body.model === 'broken' ? { status: 500 } : { text: 'whole' }));
    const { data, response } = await client.chat.completions
      .create({ model: 'twin', messages: hi, stream: true })
      .withResponse();
    expect((await textOf(data)).text).toBe('whole');
    expect(await decisionOf(response)).toMatchObject({ chosen: sound.endpoint });
    await Promise.all([broken.stop(), sound.stop()]);
  });

  test('names the decision of an instance that answers in one piece', async () => {
    const whole = await registerInstance(api, { name: 'model.whole' });
    whole.handle = (_, response) => answer(response, 200, { ok: true, output: { text: 'at once' } });
    const { data, response } = await client.chat.completions
      .create({ model: 'whole', messages: hi, stream: true })
      .withResponse();
    expect((await textOf(data)).text).toBe('at once');
    expect(await decisionOf(response)).toMatchObject({ chosen: whole.endpoint });
    expect(response.headers.get('x-capstan-cache')).toBeNull();
    await whole.stop();
  });

  test('a header reports whether it comes from the cache', async () => {
    const ask = () =>
      client.chat.completions
        .create(
          { model: 'fast', messages: [{ role: 'user', content: 'Again?' }], stream: true },
          { headers: { 'x-capstan-cache': '60' } },
        )
        .withResponse();
    const first = await ask();
    expect((await textOf(first.data)).text).toBe('Hello, world');
    const second = await ask();
    expect((await textOf(second.data)).text).toBe('Hello, world');
    expect([first, second].map(({ response }) => response.headers.get('x-capstan-cache'))).toEqual([
      'miss',
      'hit',
    ]);
    const names = [first, second].map(({ response }) => response.headers.get('x-capstan-decision'));
    expect(new Set(names).size).toBe(2);
    expect(await decisionOf(second.response)).toMatchObject({ cached: { decision_id: names[0] } });
  });

  test('without a reader ends the request to the provider', async () => {
    provider.answer(() => 'hang');
    const before = provider.requests.length;
    const stop = new AbortController();
    const asking = client.chat.completions.create(
      { model: 'fast', messages: hi, stream: true },
      { signal: stop.signal },
    );
    await waitFor('the provider to be asked', () => provider.requests.length > before);
    expect(lastRequest().isAborted).toBe(false);
    stop.abort();
    await expect(asking).rejects.toThrow();
    await waitFor('the request to be cancelled', () => lastRequest().isAborted);
  });
});

describe('an error', () => {
  const errorOf = (model: string, more: object = {}, headers: Record<string, string> = {}) =>
    client.chat.completions
      .create({ model, messages: hi, ...more } as OpenAI.ChatCompletionCreateParamsNonStreaming, { headers })
      .then(
        () => null,
        (error: InstanceType<typeof OpenAI.APIError>) => error,
      );

  test('of a name that leads nowhere suggests the nearest', async () => {
    const error = await errorOf('gpt-larg');
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect([error?.code, error?.param, error?.message]).toEqual([
      'model_not_found',
      'model',
      expect.stringContaining('model.gpt-large'),
    ]);
    expect((await errorOf('o9'))?.message).toMatch(/capstan aliases set o9 model\.\S+$/);
    expect((await errorOf('o9;'))?.message).not.toMatch(/capstan aliases/);
  });

  test('of money is a refusal before anything is spent', async () => {
    const before = provider.requests.length;
    const error = await errorOf('gpt-large', {}, { 'X-Capstan-Ceiling-Usd': '0.005' });
    expect([error?.status, error?.type, error?.code]).toEqual([402, 'insufficient_quota', 'ceiling_too_low']);
    expect(provider.requests.length).toBe(before);
  });

  test('of a field names the field', async () => {
    const many = await errorOf('fast', { n: 9 });
    expect([many?.status, many?.param]).toEqual([422, 'n']);
    const probable = await errorOf('fast', { logprobs: true });
    expect([probable?.param, probable?.message]).toEqual([
      'logprobs',
      '422 logprobs: log probabilities are not served',
    ]);
    const bad = await errorOf('fast', { messages: [{ role: 'user', content: [{ type: 'video' }] }] });
    expect([bad?.status, bad?.code, bad?.param]).toEqual([
      422,
      'request_invalid',
      expect.stringMatching(/^messages\[0\]/),
    ]);
    const key = await errorOf('fast', { stream: true }, { 'Idempotency-Key': 'k1' });
    expect([key?.status, key?.message]).toEqual([422, expect.stringContaining('stream')]);
  });

  test('of a key, and of the provider, has the form that the library expects', async () => {
    const stranger = new OpenAI({ baseURL: `${api.url}/openai/v1`, apiKey: 'cap_wrong', maxRetries: 0 });
    await expect(stranger.models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    provider.answer(() => ({ status: 429, headers: { 'retry-after': '7' } }));
    const error = await errorOf('fast');
    expect([error?.status, error?.type, error?.headers?.get('retry-after')]).toEqual([
      429,
      'rate_limit_error',
      '7',
    ]);
  });
});

test('embeddings come as numbers, whichever form the library asks for, and cost what their tokens cost', async () => {
  const prices = { ...priceAt(0.1), part: { prices: { input: 2 } } };
  await start('embed.small', prices);
  provider.answer(() => ({ vectors: (text) => [text.length, 0.5, -1.25], tokens: 1_000 }));
  const ask = { model: 'small', input: ['a', 'hello'], dimensions: 3 };
  const { data, response } = await client.embeddings.create(ask).withResponse();
  expect(data.data.map(({ embedding }) => embedding)).toEqual([
    [1, 0.5, -1.25],
    [5, 0.5, -1.25],
  ]);
  expect(data.usage).toMatchObject({ prompt_tokens: 1_000, cost_usd: 0.002 });
  expect(response.headers.get('x-capstan-cost-usd')).toBe('0.002');
  expect(lastRequest().body).toMatchObject({ input: ['a', 'hello'], dimensions: 3 });
  const plain = await client.embeddings.create({
    model: 'embed.small',
    input: 'a',
    encoding_format: 'float',
  });
  expect(plain.data[0]?.embedding).toEqual([1, 0.5, -1.25]);
  await expect(client.embeddings.create({ model: 'fast', input: 'a' })).rejects.toThrow(/embed\.small/);
});

test('models are listed with what a call may cost, and found with and without their prefix', async () => {
  const { data } = await client.models.list();
  expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining(['model.fast', 'model.gpt-large']));
  expect(await client.models.retrieve('gpt-large')).toMatchObject({
    id: 'model.gpt-large',
    object: 'model',
    instances_up: 1,
    rate_usd: 0.1,
  });
});

test('streams are admitted exactly while money is left, and nothing stays reserved', async () => {
  const prices = priceAt(0.1, [1, 2]);
  await start('model.crowded', { ...prices, file: { ...prices.file, max_concurrency: 100 } });
  const { headers } = await aLimitedProject(api, 0.915); // for 9 calls at the rate, and the worst case of one, 0.01 USD and a little
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  provider.answer(async () => {
    await held;
    return { text: 'Hello, world', usage: [1_000, 500] };
  });
  const before = provider.requests.length;
  const refused: unknown[] = [];
  const asking = Array.from({ length: 15 }, () =>
    client.chat.completions
      .create({ model: 'crowded', messages: hi, stream: true, max_tokens: 5_000 }, { headers })
      .then(textOf, (error: InstanceType<typeof OpenAI.APIError>) => void refused.push(error.type)),
  );
  await waitFor(
    'all to be admitted or refused',
    () => refused.length + provider.requests.length - before === 15,
  );
  expect([provider.requests.length - before, new Set(refused)]).toEqual([
    10,
    new Set(['insufficient_quota']),
  ]);
  release();
  const texts = (await Promise.all(asking)).flatMap((read) => read?.text ?? []);
  expect(texts).toEqual(Array.from({ length: 10 }, () => 'Hello, world'));
  // A call without a key is answered first and settled then, a moment later.
  const budgets = await waitFor('the settlements', async () => {
    const answer = await api.call('/v1/budgets', { headers });
    const { items } = (await answer.json()) as { items: { reserved_usd: number }[] };
    return items[0]?.reserved_usd === 0 ? { items } : undefined;
  });
  expect(budgets).toMatchObject({ items: [{ scope: 'project', spent_usd: 0.02, reserved_usd: 0 }] });
});
