/** Calls of `model.…` whose last answer was wrong: the model receives the reason. */
import type { RunningInstance } from '@capstan/capability/lifecycle/start-instance';
import { type PreviousFault, writeFault } from '@capstan/core/call/wrong-answer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { priced } from '../../../test/support/wrapped-models.ts';
import { type ModelLevel, schema, startModelLevel, user } from './model-level.ts';
import { call } from './support.ts';

let level: ModelLevel;
const models: Record<string, RunningInstance> = {};

beforeAll(async () => {
  level = await startModelLevel();
  const { file, part } = priced;
  const protocols = ['openai.chat', 'openai.responses'];
  models.openai = await level.start({ file, part: { ...part, protocols } });
  models.anthropic = await level.start({ kind: 'anthropic', ...priced });
});
afterAll(async () => {
  await Promise.all(Object.values(models).map((model) => model.stop()));
  await level.close();
});

const fault: PreviousFault = {
  code: 'output_invalid',
  message: 'the answer does not match: /rate must be integer',
  errors: [
    { pointer: '/rate', message: 'must be integer' },
    { pointer: '/単位', message: 'is not "kHz" 😀' },
  ],
};
const note =
  'Your last answer was not valid: the answer does not match: /rate must be integer\n- /単位 is not "kHz" 😀\nAnswer again without this fault.';

async function ask(kind: string, input: object, given: string | PreviousFault | undefined = fault) {
  const before = level.provider.requests.length;
  level.provider.answer(() => ({ garbage: answers[kind] ?? '', contentType: 'application/json' }));
  const header = typeof given === 'object' ? writeFault(given) : given;
  const answer = await call(models[kind] as RunningInstance, input, { fault: header });
  const requests = level.provider.requests.slice(before);
  return { ...answer, text: requests[0]?.text ?? '', body: requests[0]?.body as Record<string, unknown> };
}

const chat = '{"choices":[{"message":{"content":"{\\"rate\\": 8000}"},"finish_reason":"stop"}],"usage":null}';
const messages = '{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}';
const responses = '{"status":"completed","output":[{"type":"message"}]}';
const answers: Record<string, string> = { openai: chat, anthropic: messages };

describe('a translated question', () => {
  it.each([
    ['openai', 'a text', user('44.1k?'), [{ role: 'user', content: '44.1k?' }]],
    [
      'openai',
      'a result of a tool',
      {
        messages: [
          {
            role: 'assistant',
            tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: 'a', content: 'x' },
        ],
      },
      undefined,
    ],
  ])('%s: gets the fault as the last message, after %s', async (kind, _, input, before) => {
    const { body, status } = await ask(kind, { ...input, response_schema: schema });
    const messages = body.messages as readonly object[];
    expect(status).toBe(200);
    expect(messages.at(-1)).toEqual({ role: 'user', content: note });
    if (before !== undefined) expect(messages.slice(0, -1)).toEqual(before);
    expect(body.response_format).toMatchObject({ json_schema: { schema } });
  });

  it('of Anthropic gets it in the turn of the user', async () => {
    const { body } = await ask('anthropic', user('44.1k?'));
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: '44.1k?' },
          { type: 'text', text: note },
        ],
      },
    ]);
  });

  it('of n answers gets it in each request', async () => {
    const before = level.provider.requests.length;
    level.provider.answer(() => ({ text: 'x' }));
    await call(
      models.openai as RunningInstance,
      { ...user('a'), n: 2, max_output_tokens: 10 },
      { fault: writeFault(fault) },
    );
    const sent = level.provider.requests.slice(before).map(({ text }) => text.includes('Your last answer'));
    expect(sent).toEqual([true, true]);
  });

  it.each([undefined, 'no JSON', '{"code":1}'])('without a fault is as it was: %s', async (given) => {
    const { body } = await ask('openai', user('a'), given ?? '');
    expect(body.messages).toEqual([{ role: 'user', content: 'a' }]);
  });

  it.each(['x', '漢', '😀'])('gets a bounded fault, however long it is: %s', async (letter) => {
    const { body } = await ask('openai', user('a'), {
      code: 'output_invalid',
      message: letter.repeat(9_000),
    });
    const [, said] = body.messages as readonly { readonly content: string }[];
    expect(said?.content).toMatch(
      /^Your last answer was not valid: (x|漢|😀)+…\nAnswer again without this fault\.$/u,
    );
    expect(said?.content.length).toBeLessThan(1_200);
  });
});

describe('a request of a client', () => {
  const told = JSON.stringify({ role: 'user', content: note });

  it.each([
    [
      'openai',
      'openai.chat',
      chat,
      '"messages" : [ {"role":"user","content":"h\\u00e9"} ]',
      (text: string) => text.replace(' ]', ` ,${told}]`),
    ],
    ['openai', 'openai.chat', chat, '"messages":[]', () => `"messages":[${told}]`],
    [
      'anthropic',
      'anthropic.messages',
      messages,
      '"messages":[{"role":"user","content":"]"}\n]',
      (text: string) => text.replace('\n]', `\n,${told}]`),
    ],
    [
      'openai',
      'openai.responses',
      responses,
      '"input":"h\\u00e9"',
      () => `"input":[{"role":"user","content":"h\\u00e9"},${told}]`,
    ],
    [
      'openai',
      'openai.responses',
      responses,
      '"input":[{"role":"user","content":"a"}]',
      (text: string) => text.replace(']', `,${told}]`),
    ],
  ])('%s: gets it at the end of %s, and keeps its bytes', async (kind, protocol, answer, written, after) => {
    answers[kind] = answer;
    const request = (body: string) =>
      `{"model":"small", "seed":12345678901234567890,${body},"max_tokens":5,"max_output_tokens":5}`;
    const input = { protocol, request: request(written), most_input_tokens: 100 };
    expect((await ask(kind, input)).text).toBe(request(after(written)));
    expect((await ask(kind, input, '')).text).toBe(request(written));
  });

  it('without a conversation, as after previous_response_id, begins one', async () => {
    answers.openai = responses;
    const request = '{"model":"small","previous_response_id":"r"}';
    const { body } = await ask('openai', { protocol: 'openai.responses', request, most_input_tokens: 9 });
    expect(body.input).toEqual([{ role: 'user', content: note }]);
  });

  it('that the provider will refuse is left as it is', async () => {
    answers.openai = chat;
    const request = '{"model":"small","messages":7,"max_tokens":5}';
    const { text } = await ask('openai', { protocol: 'openai.chat', request, most_input_tokens: 9 });
    expect(text).toBe(request);
  });
});
