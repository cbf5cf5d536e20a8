/**
 * Long texts of mixed scripts, in requests and in answers, through everything that reads bytes: the server's requests, the
 * instance's requests, the provider's answer, and the instance's answer. Between each two of them the bytes come in pieces
 * of a fixed size that has no factor in common with the length of the text's period, so that each byte of the period ends
 * a piece many times. Short texts come byte by byte; `npm run test:long` reads answers of a million characters that way.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '../../packages/capability/test/support/capabilities.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type ByteSplitter, startByteSplitter } from '../support/byte-splitter.ts';
import { isLong } from '../support/long.ts';
import { type ModelServer, startModelServer } from '../support/model-server.ts';
import { defineModel, type ModelFile } from '../support/wrapped-models.ts';

const period =
  'Ünïcødé, Ελληνικά, Кириллица, العربية עברית, हिन्दी ไทย ខ្មែរ, 漢字かなカナ한글, 𝔘𝔫𝔦 𐍈, e\u0301 👩‍👩‍👧 🇳🇴 👍🏽, \u2028\ufeff "\\\n\t\u0001/ x';

function textOf(characters: number): string {
  return period.repeat(Math.ceil(characters / [...period].length));
}

type Form = 'openai.chat' | 'openai.responses' | 'anthropic.messages';

interface Wire {
  readonly path: string;
  readonly request: (model: string, text: string, stream: boolean) => object;
  readonly prompt: (body: Record<string, unknown>) => unknown;
  readonly whole: (text: string) => object;
  readonly events: (pieces: readonly string[], text: string) => readonly object[];
  readonly textOfWhole: (body: never) => unknown;
  readonly textOfEvent: (event: never) => string;
}

const usage = { prompt_tokens: 10, completion_tokens: 5, input_tokens: 10, output_tokens: 5 };
const responseOf = (text: string) => ({
  id: 'r',
  object: 'response',
  status: 'completed',
  output: [{ type: 'message', content: [{ type: 'output_text', text }] }],
  usage,
});

const wires: Record<Form, Wire> = {
  'openai.chat': {
    path: '/openai/v1/chat/completions',
    request: (model, content, stream) => ({
      model,
      max_tokens: 50,
      messages: [{ role: 'user', content }],
      ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
    }),
    prompt: ({ messages }) => (messages as { content: unknown }[])[0]?.content,
    whole: (content) => ({ choices: [{ index: 0, message: { content }, finish_reason: 'stop' }], usage }),
    events: (pieces) => [
      ...pieces.map((content) => ({ choices: [{ index: 0, delta: { content } }] })),
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { choices: [], usage },
    ],
    textOfWhole: (body: { choices: { message: { content: string } }[] }) => body.choices[0]?.message.content,
    textOfEvent: (event: { choices?: { delta: { content?: string } }[] }) =>
      event.choices?.[0]?.delta.content ?? '',
  },
  'openai.responses': {
    path: '/openai/v1/responses',
    request: (model, input, stream) => ({
      model,
      max_output_tokens: 50,
      store: false,
      input,
      ...(stream ? { stream } : {}),
    }),
    prompt: ({ input }) => input,
    whole: responseOf,
    events: (pieces, text) => [
      ...pieces.map((delta) => ({ type: 'response.output_text.delta', delta })),
      { type: 'response.completed', response: responseOf(text) },
    ],
    textOfWhole: (body: ReturnType<typeof responseOf>) => body.output[0]?.content[0]?.text,
    textOfEvent: (event: { type: string; delta?: string }) =>
      event.type === 'response.output_text.delta' ? (event.delta ?? '') : '',
  },
  'anthropic.messages': {
    path: '/anthropic/v1/messages',
    request: (model, content, stream) => ({
      model,
      max_tokens: 50,
      messages: [{ role: 'user', content: [{ type: 'text', text: content }] }],
      ...(stream ? { stream } : {}),
    }),
    prompt: ({ messages }) => (messages as { content: { text: unknown }[] }[])[0]?.content[0]?.text,
    whole: (text) => ({ type: 'message', content: [{ type: 'text', text }], stop_reason: 'end_turn', usage }),
    events: (pieces) => [
      { type: 'message_start', message: { usage } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ...pieces.map((text) => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'text_delta', text },
      })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
      { type: 'message_stop' },
    ],
    textOfWhole: (body: { content: { text: string }[] }) => body.content[0]?.text,
    textOfEvent: (event: { delta?: { text?: string } }) => event.delta?.text ?? '',
  },
};

function written(events: readonly object[], form: Form): string {
  const lines = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  return form === 'openai.chat' ? `${lines}data: [DONE]\n\n` : lines;
}

/** A text as a stream brings it. */
function cut(text: string): readonly string[] {
  return text.match(/[\s\S]{1,400}(?![\udc00-\udfff])/g) ?? [];
}

function readEvents(body: string): object[] {
  const data = body.split('\n').filter((line) => line.startsWith('data: {'));
  return data.map((line) => JSON.parse(line.slice('data: '.length)) as object);
}

let api: TestApi;
let provider: ModelServer;
const closing: (() => Promise<unknown>)[] = [];

/** A model that its router reaches by a splitter, as it reaches its provider. */
async function startSplitModel(name: string, size: number, file: Partial<ModelFile>): Promise<ByteSplitter> {
  const before = await startByteSplitter(new URL(provider.url).origin, size);
  const capability = defineModel({ name, url: `${before.url}/v1`, ...file });
  const instance = await serve(capability);
  const reached = await startByteSplitter(instance.endpoint, size);
  const body = {
    name,
    version: capability.spec.version,
    endpoint: reached.url,
    spec_url: `${reached.url}/spec`,
    health_url: `${reached.url}/health`,
    cost_model: capability.cost_model,
    tags: [],
  };
  expect((await api.call('/v1/capabilities', { body })).status).toBe(201);
  await api.waitForInstance(name, reached.url);
  closing.push(before.close, () => instance.stop(), reached.close);
  return reached;
}

beforeAll(async () => {
  [api, provider] = await Promise.all([startTestApi(), startModelServer()]);
});
afterAll(async () => {
  await Promise.all(closing.map((close) => close()));
  await Promise.all([provider.close(), api.close()]);
});

const routes: readonly (readonly [client: Form, provider: Form])[] = [
  ['openai.chat', 'openai.chat'],
  ['openai.responses', 'openai.responses'],
  ['anthropic.messages', 'anthropic.messages'],
  ['openai.chat', 'anthropic.messages'],
  ['openai.responses', 'openai.chat'],
  ['anthropic.messages', 'openai.chat'],
  ['openai.responses', 'anthropic.messages'],
];

/** A translation of a million characters takes seconds, and byte by byte minutes. */
function translated(characters: number, size: number): number {
  if (size === 1) return 5_000;
  return isLong ? characters : 100_000;
}

describe.each([
  [1_000_000, 251],
  [isLong ? 1_000_000 : 5_000, 1],
])('%i characters in pieces of %i bytes', (characters, size) => {
  // The server holds 200 bytes of memory for each piece of a request.
  const prompt = textOf(size === 1 ? 5_000 : characters);
  let front: ByteSplitter;
  beforeAll(async () => {
    front = await startByteSplitter(api.url, size);
    closing.push(front.close);
    const protocols = ['openai.chat', 'openai.responses'];
    await startSplitModel(`model.chat-${size}`, size, { part: { model: `chat-${size}`, protocols } });
    await startSplitModel(`model.only-${size}`, size, { part: { model: `only-${size}` } });
    await startSplitModel(`model.claude-${size}`, size, {
      kind: 'anthropic',
      part: { model: `claude-${size}` },
    });
  });

  test.each(routes)('reach a provider from a client whole, and come back: %s, %s', async (from, to) => {
    const text = textOf(from === to ? characters : translated(characters, size));
    const [client, other] = [wires[from], wires[to]];
    const model =
      to === 'anthropic.messages' ? `claude-${size}` : from === to ? `chat-${size}` : `only-${size}`;
    for (const stream of [false, true]) {
      const garbage = stream ? written(other.events(cut(text), text), to) : JSON.stringify(other.whole(text));
      provider.answer(() => ({ garbage, ...(stream ? {} : { contentType: 'application/json' }) }));
      const body = JSON.stringify(client.request(model, prompt, stream));
      const headers = { authorization: `Bearer ${api.apiKey}`, 'content-type': 'application/json' };
      const answered = await fetch(`${front.url}${client.path}`, { method: 'POST', headers, body });
      const got = await answered.text();
      const asked = provider.requests.at(-1);
      expect([answered.status, got.slice(0, answered.status === 200 ? 0 : 500)]).toEqual([200, '']);
      expect(other.prompt(asked?.body ?? {}) === prompt).toBe(true);
      if (from === to) {
        expect(asked?.text === body).toBe(true);
        expect(got === garbage).toBe(true);
      } else if (stream) {
        expect(
          readEvents(got)
            .map((event) => client.textOfEvent(event as never))
            .join('') === text,
        ).toBe(true);
      } else expect(client.textOfWhole(JSON.parse(got) as never) === text).toBe(true);
    }
  });
});
