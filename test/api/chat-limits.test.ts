/** The limits of requests in OpenAI's form, and their settings. */

import type { Limits } from '@capstan/core/contracts/request-limits';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({
    BODY_LIMIT_BYTES: 1_024,
    CHAT_LIMIT_BYTES: 4_096,
    CHAT_MESSAGES: 2,
    CHAT_TOOLS: 1,
  });
});
afterAll(() => api.close());

const say = (content: string): OpenAI.ChatCompletionMessageParam => ({ role: 'user', content });
const aTool = (name: string): OpenAI.ChatCompletionTool => ({ type: 'function', function: { name } });

function errorOf(request: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming>) {
  const client = new OpenAI({ baseURL: `${api.url}/openai/v1`, apiKey: api.apiKey, maxRetries: 0 });
  return client.chat.completions
    .create({ model: 'none', messages: [say('Hi')], ...request })
    .then(() => null)
    .catch(({ status, param, message }: InstanceType<typeof OpenAI.APIError>) => ({
      status,
      param,
      message,
    }));
}

test.each([
  [
    'messages',
    { messages: [say('1'), say('2'), say('3')] },
    '3 messages; at most 2 are allowed (CHAT_MESSAGES)',
  ],
  ['tools', { tools: [aTool('a'), aTool('b')] }, '2 tools; at most 1 are allowed (CHAT_TOOLS)'],
])('too many %s are refused with what was seen and allowed', async (param, request, words) => {
  expect(await errorOf(request)).toEqual({ status: 422, param, message: expect.stringContaining(words) });
});

test('the setting bounds the body of a chat request alone, exactly', async () => {
  expect(await errorOf({ messages: [say('a'.repeat(3_000))] })).toMatchObject({ status: 404 });
  expect(await errorOf({ messages: [say('a'.repeat(5_000))] })).toMatchObject({
    status: 413,
    message: expect.stringContaining('larger than the allowed 4096 bytes'),
  });
});

test('the limits are shown', async () => {
  const [, limits] = await readJson<Limits>(api.call('/v1/limits'));
  expect(limits).toMatchObject({ chat: { bytes: 4_096 }, chat_messages: 2, chat_tools: 1 });
});
