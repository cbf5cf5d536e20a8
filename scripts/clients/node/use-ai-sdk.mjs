import { readFileSync } from 'node:fs';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateText, Output, stepCountIs, streamText, tool } from 'ai';
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
  openaiUrl,
  place,
  png,
  rain,
  weather,
} from './support.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

const openai = createOpenAI({ baseURL: openaiUrl, apiKey });
const anthropic = createAnthropic({ baseURL: `${anthropicUrl}/v1`, apiKey });
const compatible = createOpenAICompatible({
  name: 'capstan',
  baseURL: openaiUrl,
  apiKey,
  includeUsage: true,
});

const tools = {
  weather: tool({
    description: 'The weather of a place.',
    inputSchema: z.object({ place: z.string() }),
    execute: ({ place: name }) => {
      expect(name, 'Oslo');
      return 'rain';
    },
  }),
};

/** What every provider of models has. @param used a model of it */
function featuresOf(used) {
  const asked = (prompt, more = {}) => ({ model: used, prompt, maxRetries: 0, ...more });
  const twoTurns = asked(weather, { tools, stopWhen: stepCountIs(2) });
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: hello },
        { type: 'image', image: Buffer.from(png, 'base64'), mediaType: 'image/png' },
      ],
    },
  ];
  return {
    text: async () => expect((await generateText(asked(hello))).text, 'Hello, world'),
    stream: () => expectParts(streamText(asked(hello)).textStream),
    tools: async () => expect((await generateText(twoTurns)).text, rain),
    'streamed tools': async () => {
      const answer = streamText(twoTurns);
      await answer.consumeStream({
        onError: (error) => {
          throw error;
        },
      });
      expect(await answer.text, rain);
    },
    'structured output': async () => {
      const output = Output.object({ schema: z.object({ place: z.string() }) });
      expect((await generateText(asked(place, { output }))).output, { place: 'Oslo' });
    },
    image: async () =>
      expect((await generateText({ model: used, messages, maxRetries: 0 })).text, 'I see a picture'),
    cancel: () =>
      expectStatus(null, () => generateText(asked(hang, { abortSignal: AbortSignal.timeout(2_000) }))),
  };
}

function withOptions(used, providerOptions) {
  return async () => {
    const asked = { model: used, prompt: weather, tools, stopWhen: stepCountIs(2), maxRetries: 0 };
    expect((await generateText({ ...asked, providerOptions })).text, rain);
  };
}

function embed(used) {
  return async () => {
    const { embeddings } = await embedMany({ model: used, values: ['a', 'hello'], maxRetries: 0 });
    expect(embeddings, [
      [1, 0.5],
      [5, 0.5],
    ]);
  };
}

function fail(used) {
  return () => expectStatus(404, () => generateText({ model: used, prompt: hello, maxRetries: 0 }));
}

function named(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return `${name} ${JSON.parse(readFileSync(file, 'utf8')).version}`;
}

const effort = { openai: { reasoningEffort: 'low' } };
await check(`${named('@ai-sdk/openai')}, openai('…')`, {
  ...featuresOf(openai(model)),
  'reasoning effort': withOptions(openai(model), effort),
  error: fail(openai(`${model}x`)),
});
await check(`${named('@ai-sdk/openai')}, openai.chat('…')`, {
  ...featuresOf(openai.chat(model)),
  'reasoning effort': withOptions(openai.chat(model), effort),
  embeddings: embed(openai.textEmbeddingModel('small')),
  error: fail(openai.chat(`${model}x`)),
});
const thinking = { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } };
await check(named('@ai-sdk/anthropic'), {
  ...featuresOf(anthropic(model)),
  thinking: withOptions(anthropic(model), thinking),
  error: fail(anthropic(`${model}x`)),
});
await check(named('@ai-sdk/openai-compatible'), {
  ...featuresOf(compatible(model)),
  embeddings: embed(compatible.embeddingModel('small')),
  error: fail(compatible(`${model}x`)),
});
