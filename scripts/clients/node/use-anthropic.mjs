import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { VERSION } from '@anthropic-ai/sdk/version';
import { z } from 'zod';
import {
  anthropicUrl,
  apiKey,
  check,
  expect,
  expectParts,
  expectStatus,
  hang,
  hello,
  model,
  parameters,
  place,
  rain,
  weather,
} from './support.mjs';

const client = new Anthropic({ baseURL: anthropicUrl, apiKey, maxRetries: 0 });

function asked(content = hello, more = {}) {
  return { model, max_tokens: 500, messages: [{ role: 'user', content }], ...more };
}

function create(content, more) {
  return client.messages.create(asked(content, more));
}

function textOf({ content }) {
  return content.map(({ type, text }) => (type === 'text' ? text : '')).join('');
}

async function* textsOf(stream) {
  for await (const { type, delta } of stream)
    if (type === 'content_block_delta' && delta.type === 'text_delta') yield delta.text;
}

const tools = [{ name: 'weather', description: 'The weather of a place.', input_schema: parameters }];

/** @param ask asks with these further fields */
async function twoTurns(ask) {
  const { content } = await ask({ tools });
  const { id, input } = content.find(({ type }) => type === 'tool_use');
  expect(input, { place: 'Oslo' });
  const messages = [
    { role: 'user', content: weather },
    { role: 'assistant', content },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'rain' }] },
  ];
  expect(textOf(await ask({ tools, messages })), rain);
}

async function toolRunner(stream) {
  const run = ({ place: name }) => {
    expect(name, 'Oslo');
    return 'rain';
  };
  const inputSchema = z.object({ place: z.string() });
  const tool = betaZodTool({ name: 'weather', description: 'The weather.', inputSchema, run });
  const runner = client.beta.messages.toolRunner(asked(weather, { tools: [tool], stream }));
  expect(textOf(await runner.runUntilDone()), rain);
}

async function countTokens() {
  const { messages } = asked();
  expect((await client.messages.countTokens({ model, messages })).input_tokens > 0, true);
}

async function parse() {
  const format = zodOutputFormat(z.object({ place: z.string() }));
  const message = await client.messages.parse(asked(place, { output_config: { format } }));
  expect(message.parsed_output, { place: 'Oslo' });
}

async function models() {
  const { data } = await client.models.list();
  expect(
    data.some(({ id }) => id === model),
    true,
  );
}

await check(`@anthropic-ai/sdk ${VERSION}`, {
  messages: async () => expect(textOf(await create()), 'Hello, world'),
  stream: () => expectParts(textsOf(client.messages.stream(asked()))),
  tools: () => twoTurns((more) => create(weather, more)),
  'streamed tools': () => twoTurns((more) => client.messages.stream(asked(weather, more)).finalMessage()),
  parse,
  beta: async () => {
    const betas = ['context-management-2025-06-27'];
    expect(textOf(await client.beta.messages.create(asked(hello, { betas }))), 'Hello, world');
  },
  toolRunner: () => toolRunner(false),
  'toolRunner in streams': () => toolRunner(true),
  count_tokens: countTokens,
  models,
  error: () => expectStatus(404, () => create(hello, { model: `${model}x` })),
  cancel: () => expectStatus(null, () => client.messages.create(asked(hang), { timeout: 2_000 })),
});
