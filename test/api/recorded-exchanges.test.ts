/**
 * Sixty exchanges of each protocol, streamed and not, with a provider that speaks it: what the provider gets and what the
 * client gets are, byte for byte, what they would be on a direct connection. They leave Capstan nothing to change: the
 * model has the name that the client writes, there is a limit, and streams count tokens. The tests after them list what it
 * changes otherwise, and what a client gets of a provider that fails.
 */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { chatExchanges } from '../support/exchanges/chat.ts';
import { messagesExchanges } from '../support/exchanges/messages.ts';
import { responsesExchanges } from '../support/exchanges/responses.ts';
import { type ModelReply, type ModelServer, startModelServer } from '../support/model-server.ts';
import { createServedModels } from '../support/served-models.ts';
import { modelKey } from '../support/wrapped-models.ts';

let api: TestApi;
let provider: ModelServer;
let models: ReturnType<typeof createServedModels>;

beforeAll(async () => {
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
  models = createServedModels(api, provider);
  await models.start('model.small', {
    part: { model: 'small', protocols: ['openai.chat', 'openai.responses'] },
  });
  await models.start('model.claude', { kind: 'anthropic', part: { model: 'claude' } });
});
afterAll(async () => {
  await models.stop();
  await Promise.all([provider.close(), api.close()]);
});

const headers = {
  'content-type': 'application/json',
  'anthropic-version': '2023-06-01',
  'anthropic-beta': 'a,b',
};

interface Seen {
  readonly asked: string | undefined;
  readonly status: number;
  readonly type: string | undefined;
  readonly answered: Buffer;
}

/** What the provider got and what the client got. */
async function ask(url: string, body: string): Promise<Seen> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${api.apiKey}` },
    body,
  });
  const answered = Buffer.from(await answer.arrayBuffer());
  const [type] = (answer.headers.get('content-type') ?? '').split(';');
  return { asked: provider.requests.at(-1)?.text, status: answer.status, type, answered };
}

const sizes = [undefined, 1_000, 61, 7];
const usageAsked = '"stream_options":{"include_usage":true},';

const protocols = [
  ['openai.chat', '/openai/v1/chat/completions', '/chat/completions', chatExchanges, usageAsked],
  ['openai.responses', '/openai/v1/responses', '/responses', responsesExchanges, ''],
  ['anthropic.messages', '/anthropic/v1/messages', '/messages', messagesExchanges, ''],
] as const;

describe.each(protocols)('%s', (_, path, direct, exchanges, more) => {
  const compare = async (request: string, reply: ModelReply) => {
    provider.answer(() => reply);
    const expected = await ask(`${provider.url}${direct}`, request);
    const before = provider.requests.length;
    const seen = await ask(`${api.url}${path}`, request);
    expect({ ...seen, answered: seen.answered.toString() }).toEqual({
      ...expected,
      answered: expected.answered.toString(),
    });
    expect(seen.answered.equals(expected.answered)).toBe(true);
    expect(provider.requests.length).toBe(before + 1);
  };

  test('has sixty exchanges', () => {
    expect(new Set(exchanges.map(({ name }) => name)).size).toBe(60);
  });

  test.each(exchanges)('$name', async ({ request, answer: { whole, events } }) => {
    await compare(request, { garbage: whole, contentType: 'application/json' });
    const each = sizes[events.length % sizes.length];
    const reply = each === undefined || events.length > 50_000 ? {} : { each };
    await compare(request.replace('{', `{ "stream" : true,${more}`), { garbage: events, ...reply });
  });
});

/** Everything that Capstan changes in a request; `sent` is what the provider gets of it. */
const changes = [
  {
    what: 'the name of the model',
    path: '/openai/v1/chat/completions',
    request:
      '{ "model" :"model.small", "max_tokens":5e1,"messages":[{"role":"user","content":"hi","model":"model.small"}]}',
    sent: '{ "model" :"small", "max_tokens":5e1,"messages":[{"role":"user","content":"hi","model":"model.small"}]}',
  },
  {
    what: 'a limit that is missing',
    path: '/openai/v1/responses',
    request: '{ "model":"small", "input":"hi" }',
    sent: '{ "model":"small", "input":"hi","max_output_tokens":4096 }',
  },
  {
    what: 'a limit that is too high',
    path: '/anthropic/v1/messages',
    request: '{"model":"claude","max_tokens": 1e5 ,"messages":[{"role":"user","content":"hi"}]}',
    sent: '{"model":"claude","max_tokens": 4096 ,"messages":[{"role":"user","content":"hi"}]}',
  },
  {
    what: 'a stream that does not count tokens',
    path: '/openai/v1/chat/completions',
    request: '{"stream":true,"model":"small","max_tokens":5,"messages":[{"role":"user","content":"hi"}] }',
    sent: '{"stream":true,"model":"small","max_tokens":5,"messages":[{"role":"user","content":"hi"}],"stream_options":{"include_usage":true} }',
  },
];

describe('Capstan changes', () => {
  test.each(changes)('$what, and nothing else', async ({ path, request, sent }) => {
    const { whole, events } =
      (path.includes('anthropic') ? messagesExchanges : chatExchanges)[0]?.answer ?? {};
    const isStream = request.includes('"stream":true');
    const garbage =
      (isStream ? events : whole)?.replace(
        '"choices"',
        path.includes('responses') ? '"output"' : '"choices"',
      ) ?? '';
    provider.answer(() => ({ garbage, ...(isStream ? {} : { contentType: 'application/json' }) }));
    const seen = await ask(`${api.url}${path}`, request);
    expect([seen.status, seen.asked]).toEqual([200, sent]);
    const kept = isStream ? garbage.replace(/data: [^\n]*"choices":\[\],"usage"[^\n]*\n\n/, '') : garbage;
    expect(kept.length < garbage.length).toBe(isStream);
    expect(seen.answered.toString()).toBe(kept);
  });

  test('the key, and passes on no other header of the client than those of the protocols', async () => {
    provider.answer(() => ({
      garbage: messagesExchanges[0]?.answer.whole ?? '',
      contentType: 'application/json',
    }));
    await ask(`${api.url}/anthropic/v1/messages`, messagesExchanges[0]?.request ?? '');
    const { authorization, 'x-api-key': key, ...others } = provider.requests.at(-1)?.headers ?? {};
    expect([authorization, key]).toEqual([undefined, modelKey]);
    expect(others).toMatchObject(headers);
    expect(Object.keys(others).filter((name) => name.startsWith('x-'))).toEqual([]);
  });
});

/** Those of which the instance does not rest; the others are in provider-errors.test.ts. */
const errors = [
  [400, 400],
  [413, 413],
  [422, 400],
] as const;
const words = 'no “é” here: 漢 😀';

describe.each(protocols)('%s, where the provider fails', (_, path, __, exchanges, more) => {
  const [
    {
      request,
      answer: { events },
    },
  ] = exchanges as [(typeof exchanges)[number]];
  const streamed = request.replace('{', `{"stream":true,${more}`);

  test.each(errors)('with %i, answers %i with its words, also to a stream', async (status, shown) => {
    provider.answer(() => ({
      status,
      body: { type: 'error', error: { type: 'invalid_request_error', message: words } },
    }));
    for (const body of [request, streamed]) {
      const seen = await ask(`${api.url}${path}`, body);
      expect([seen.status, seen.type]).toEqual([shown, 'application/json']);
      expect(JSON.parse(seen.answered.toString())).toMatchObject({ error: { message: words } });
    }
  });

  test('in the middle of a stream, passes on what came, and then its words, once', async () => {
    const ends = [...events.matchAll(/\n\n/g)].map(({ index }) => index + 2);
    const error = '{"type":"invalid_request_error","code":"content_filter","message":"t\\u00f6 busy"}';
    const failed = `{"type":"response.failed","response":{"status":"failed","error":${error}}}`;
    const isResponse = path.endsWith('responses');
    for (const [at, end] of ends.slice(0, -2).entries()) {
      const begun = events.slice(0, end);
      const last = isResponse && at % 2 === 0 ? failed : `{"type":"error","error":${error}}`;
      provider.answer(() => ({ garbage: `${begun}data: ${last}\n\n`, each: 50 }));
      const text = (await ask(`${api.url}${path}`, streamed)).answered.toString();
      expect(text.startsWith(begun)).toBe(true);
      expect(text.slice(begun.length).match(/tö busy/g)).toHaveLength(1);
      expect(text.slice(begun.length).match(/\n\n/g)).toHaveLength(1);
    }
  });
});

/** What a library makes of an answer, or of its stream. */
async function read(asked: PromiseLike<unknown>): Promise<unknown> {
  const made = await asked;
  if (typeof made !== 'object' || made === null || !(Symbol.asyncIterator in made)) return made;
  const events: unknown[] = [];
  for await (const event of made as AsyncIterable<unknown>) events.push(event);
  return events;
}

describe('a library', () => {
  const tools = [
    { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: { é: {} } } } },
  ] as const;
  const openai = (baseURL: string) => new OpenAI({ baseURL, apiKey: api.apiKey, maxRetries: 0 });
  const anthropic = (baseURL: string) => new Anthropic({ baseURL, apiKey: api.apiKey, maxRetries: 0 });
  const user = { role: 'user', content: 'Hé “😀”' } as const;
  const libraries = [
    [
      'openai, chat',
      chatExchanges,
      (isDirect: boolean, stream: boolean) =>
        openai(isDirect ? provider.url : `${api.url}/openai/v1`).chat.completions.create({
          model: 'small',
          max_tokens: 50,
          seed: 7,
          messages: [user],
          tools: [...tools],
          stream,
          ...(stream ? { stream_options: { include_usage: true } } : {}),
        }),
    ],
    [
      'openai, responses',
      responsesExchanges,
      (isDirect: boolean, stream: boolean) =>
        openai(isDirect ? provider.url : `${api.url}/openai/v1`).responses.create({
          model: 'small',
          max_output_tokens: 50,
          input: [user],
          reasoning: { effort: 'low' },
          include: ['reasoning.encrypted_content'],
          stream,
        }),
    ],
    [
      'anthropic',
      messagesExchanges,
      (isDirect: boolean, stream: boolean) =>
        anthropic(isDirect ? provider.url.replace('/v1', '') : `${api.url}/anthropic`).beta.messages.create({
          model: 'claude',
          max_tokens: 2_000,
          betas: ['x-2026'],
          messages: [user],
          thinking: { type: 'enabled', budget_tokens: 1_024 },
          stream,
        }),
    ],
  ] as const;

  test.each(libraries)(
    'reads and writes the same as on a direct connection: %s',
    async (_, exchanges, call) => {
      let streams = 0;
      for (const {
        answer: { name, whole, events },
      } of exchanges.slice(0, 30)) {
        for (const stream of [false, true]) {
          provider.answer(() =>
            stream ? { garbage: events } : { garbage: whole, contentType: 'application/json' },
          );
          const direct = await read(call(true, stream));
          const asked = provider.requests.at(-1)?.text;
          expect([name, await read(call(false, stream))]).toEqual([name, direct]);
          expect(provider.requests.at(-1)?.text).toBe(asked);
          if (Array.isArray(direct) && direct.length > 2) streams += 1;
        }
      }
      // Anthropic's library skips events without names.
      expect(streams).toBeGreaterThanOrEqual(29);
    },
  );
});
