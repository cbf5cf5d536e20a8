/** The refusals of providers reach programs with the status, code and words by which their libraries know them. */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';
import { answer, type Handler, type Instance } from '../support/fleet.ts';

let api: TestApi;
let model: Instance;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  api = await startTestApi();
  model = await registerInstance(api, { name: 'model.fails' });
  openai = new OpenAI({ baseURL: `${api.url}/openai/v1`, apiKey: api.apiKey, maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: `${api.url}/anthropic`, apiKey: api.apiKey, maxRetries: 0 });
});
afterAll(async () => {
  await model.stop();
  await api.close();
});

const messages = [{ role: 'user', content: 'hi' }] as const;

/** An instance that hands on the refusal of its provider. */
function refusing(status: number, provider: unknown, headers: Record<string, string> = {}): Handler {
  return (_, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    answer(response, status, { ok: false, error: 'provider_refused: no', provider });
  };
}

async function refusals(handle: Handler) {
  model.handle = handle;
  const body = { model: 'fails', messages: [...messages] };
  const chat = openai.chat.completions.create(body).catch((error: unknown) => error);
  const chatError = (await chat) as InstanceType<typeof OpenAI.APIError>;
  const message = anthropic.messages.create({ ...body, max_tokens: 9 }).catch((error: unknown) => error);
  return { chat: chatError, message: (await message) as InstanceType<typeof Anthropic.APIError> };
}

const tooLong = {
  message: 'maximum context length is 8192 tokens',
  type: 'invalid_request_error',
  param: 'messages',
};

test('an error names the decision of the call that was made, in each protocol', async () => {
  const { chat, message } = await refusals(refusing(422, { status: 400, message: 'no' }));
  for (const { headers } of [chat, message]) {
    const decision = await api.call(`/v1/decisions/${headers?.get('x-capstan-decision')}`);
    expect(await decision.json()).toMatchObject({ chosen: model.endpoint });
  }
});

describe('a refusal of the provider', () => {
  test.each<[name: string, Handler, chat: object, message: object]>([
    [
      'of too long a context',
      refusing(422, { status: 400, code: 'context_length_exceeded', ...tooLong }),
      { status: 400, code: 'context_length_exceeded', ...tooLong, message: `400 ${tooLong.message}` },
      {
        status: 400,
        type: 'invalid_request_error',
        error: { error: { code: 'context_length_exceeded', message: tooLong.message } },
      },
    ],
    [
      'by its filter',
      refusing(422, { status: 400, code: 'content_filter', message: 'filtered' }),
      { status: 400, code: 'content_filter' },
      { status: 400, error: { error: { code: 'content_filter' } } },
    ],
    [
      'of a field',
      refusing(422, { status: 422, message: 'no' }),
      { status: 400, code: 'input_rejected', message: '400 no' },
      { status: 400 },
    ],
    [
      'of a thread',
      refusing(422, { status: 400, code: 'thread_unsupported_request', message: 'no threads' }),
      { status: 400 },
      {
        error: { error: { details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } } },
      },
    ],
    [
      'of a thread that it has lost',
      refusing(422, { status: 400, code: 'thread_not_found', message: 'no such thread' }),
      { status: 400 },
      { error: { error: { details: { error_code: 'thread_not_found' } } } },
    ],
    [
      'of its size',
      refusing(422, { status: 413, message: 'large' }),
      { status: 413 },
      { status: 413, type: 'request_too_large' },
    ],
    [
      'of too many requests',
      refusing(
        503,
        { status: 429, code: 'rate_limit_exceeded', message: 'slow down' },
        { 'retry-after': '7' },
      ),
      { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded', message: '429 slow down' },
      { status: 429, type: 'rate_limit_error', error: { error: { message: 'slow down' } } },
    ],
    [
      'while it is overloaded',
      refusing(503, { status: 529, type: 'overloaded_error', message: 'Overloaded' }),
      { status: 503, message: '503 Overloaded' },
      { status: 529, type: 'overloaded_error', error: { error: { message: 'Overloaded' } } },
    ],
    [
      'while it is away',
      refusing(503, { status: 503, message: 'away' }),
      { status: 503, message: '503 away' },
      { status: 503, type: 'overloaded_error' },
    ],
    [
      'of the key of its operator',
      refusing(502, { status: 401, message: 'bad key' }),
      { status: 502, code: 'capability_failed' },
      { status: 502, type: 'api_error' },
    ],
  ])('%s', async (_, handle, chat, message) => {
    const told = await refusals(handle);
    expect(told.chat).toMatchObject(chat);
    expect(told.message).toMatchObject(message);
  });

  test.each<[what: string, more: Record<string, unknown>]>([
    ['details', { details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] } }],
    [
      'a filter',
      { innererror: { content_filter_result: { hate: { filtered: true } } }, message: 'no', type: 'x' },
    ],
  ])('passes on other fields of the error: %s', async (_, more) => {
    const { chat, message } = await refusals(refusing(422, { status: 400, message: 'told', more }));
    const { message: _text, type: _type, ...others } = more;
    expect(chat.error).toMatchObject({ ...others, message: 'told', type: 'invalid_request_error' });
    expect((message.error as { error: object }).error).toMatchObject({ ...others, message: 'told' });
  });

  test.each<[string, Handler]>([
    [
      'that is too long',
      refusing(422, { status: 400, message: 'told', more: { details: 'x'.repeat(9_000) } }),
    ],
    ['of the operator', refusing(502, { status: 401, message: 'told', more: { details: 'org-1' } })],
  ])('keeps to itself a field %s', async (_, handle) => {
    const { chat, message } = await refusals(handle);
    expect(JSON.stringify([chat.error, message.error])).not.toContain('details');
  });

  test('has the class of error that a program catches', async () => {
    const { chat, message } = await refusals(refusing(422, { status: 400, message: 'no' }));
    expect([chat, message]).toEqual([
      expect.any(OpenAI.BadRequestError),
      expect.any(Anthropic.BadRequestError),
    ]);
    const late = await refusals(refusing(503, { status: 429, message: 'no' }));
    expect([late.chat, late.message]).toEqual([
      expect.any(OpenAI.RateLimitError),
      expect.any(Anthropic.RateLimitError),
    ]);
  });

  test.each([
    ['7', '7', 7_000],
    ['1.5', '2', 1_500],
  ])('asks for a pause of %s s as it was given', async (given, seconds, ms) => {
    const { chat } = await refusals(refusing(429, { status: 429, message: 'no' }, { 'retry-after': given }));
    expect(chat.headers?.get('retry-after')).toBe(seconds);
    const told = Number(chat.headers?.get('retry-after-ms'));
    expect([told >= ms, told < 2 * ms + 1_500]).toEqual([true, true]);
  });

  test('is known in a stream that has begun', async () => {
    const provider = { status: 400, code: 'content_filter', message: 'filtered' };
    model.handle = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      response.write(`${JSON.stringify({ delta: { content: 'a' } })}\n`);
      response.end(`${JSON.stringify({ ok: false, error: 'no', status: 422, provider })}\n`);
    };
    const text = await (
      await api.call('/openai/v1/chat/completions', { body: { model: 'fails', messages, stream: true } })
    ).text();
    expect(text).toContain('"code":"content_filter"');
  });

  test('is in the problem of a direct call, with texts that are cut', async () => {
    model.handle = refusing(422, {
      status: 400,
      code: 'c'.repeat(300),
      message: 'm'.repeat(9_000),
      extra: 'x',
    });
    const { status, body } = await execOn(api, 'model.fails');
    expect([status, body]).toMatchObject([422, { code: 'input_rejected' }]);
    expect((body as { provider?: unknown }).provider).toEqual({
      status: 400,
      code: 'c'.repeat(200),
      message: 'm'.repeat(4_096),
    });
  });
});

describe.each([{ status: 200 }, { status: 'no' }, { message: 'no' }, 'text', [1], null])(
  'a provider that is none: %j',
  (provider) => {
    test('changes nothing', async () => {
      const { chat } = await refusals(refusing(422, provider));
      expect(chat).toMatchObject({ status: 422, code: 'input_rejected' });
    });
  },
);

test('an instance that is busy itself answers in its own words', async () => {
  model.handle = (_, response) => answer(response, 503, { ok: false, error: 'the GPU is warming up' });
  const { chat } = await refusals(model.handle);
  expect(chat).toMatchObject({
    status: 503,
    code: 'overloaded',
    message: expect.stringContaining('the GPU is warming up'),
  });
});
