import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { VERSION } from 'openai/version';
import { z } from 'zod';
import {
  apiKey,
  check,
  expect,
  expectParts,
  expectStatus,
  hang,
  hello,
  model,
  openaiUrl,
  parameters,
  place,
  png,
  rain,
  weather,
} from './support.mjs';

const client = new OpenAI({ baseURL: openaiUrl, apiKey, maxRetries: 0 });

function asked(content = hello, more = {}) {
  return { model, messages: [{ role: 'user', content }], ...more };
}

function create(content, more) {
  return client.chat.completions.create(asked(content, more));
}

async function* contentsOf(stream) {
  for await (const chunk of stream) yield chunk.choices[0]?.delta.content;
}

async function runTools(stream) {
  const run = ({ place: name }) => {
    expect(name, 'Oslo');
    return 'rain';
  };
  const tool = { name: 'weather', description: 'The weather.', parse: JSON.parse, function: run, parameters };
  const tools = [{ type: 'function', function: tool }];
  const runner = client.chat.completions.runTools(asked(weather, { tools, stream }));
  expect(await runner.finalContent(), rain);
}

async function parse() {
  const response_format = zodResponseFormat(z.object({ place: z.string() }), 'place');
  const completion = await client.chat.completions.parse(asked(place, { response_format }));
  expect(completion.choices[0].message.parsed, { place: 'Oslo' });
}

const tools = [{ type: 'function', name: 'weather', parameters, strict: true }];

function resultOf({ output }) {
  const told = output.find(({ type }) => type === 'function_call');
  expect(JSON.parse(told.arguments), { place: 'Oslo' });
  return { type: 'function_call_output', call_id: told.call_id, output: 'rain' };
}

async function responsesTools() {
  const first = await client.responses.create({ model, input: weather, tools });
  const input = [resultOf(first)];
  const second = await client.responses.create({ model, input, tools, previous_response_id: first.id });
  expect(second.output_text, rain);
}

async function* deltasOf(stream) {
  for await (const event of stream) if (event.type === 'response.output_text.delta') yield event.delta;
}

async function responsesStream() {
  await expectParts(deltasOf(client.responses.stream({ model, input: hello })));
  const first = await client.responses.stream({ model, input: weather, tools }).finalResponse();
  const input = [{ role: 'user', content: weather }, ...first.output, resultOf(first)];
  await expectParts(deltasOf(client.responses.stream({ model, input, tools })), rain);
}

async function image() {
  const url = `data:image/png;base64,${png}`;
  const parts = [
    { type: 'text', text: hello },
    { type: 'image_url', image_url: { url } },
  ];
  expect((await create(parts)).choices[0].message.content, 'I see a picture');
}

async function embeddings() {
  const { data } = await client.embeddings.create({ model: 'small', input: ['a', 'hello'] });
  expect(
    data.map(({ embedding }) => embedding),
    [
      [1, 0.5],
      [5, 0.5],
    ],
  );
}

async function models() {
  const { data } = await client.models.list();
  expect(
    data.some(({ id }) => id === model),
    true,
  );
}

await check(`openai ${VERSION}`, {
  chat: async () => expect((await create()).choices[0].message.content, 'Hello, world'),
  stream: async () => expectParts(contentsOf(await create(hello, { stream: true }))),
  runTools: () => runTools(false),
  'runTools in streams': () => runTools(true),
  parse,
  responses: async () =>
    expect((await client.responses.create({ model, input: hello })).output_text, 'Hello, world'),
  'responses with tools': responsesTools,
  'responses in streams': responsesStream,
  image,
  embeddings,
  models,
  error: () => expectStatus(404, () => create(hello, { model: `${model}x` })),
  cancel: () => expectStatus(null, () => client.chat.completions.create(asked(hang), { timeout: 2_000 })),
});
