/** OpenAI's responses by OpenAI's own library, over instances that answer chats. */
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.ts';
import { aLimitedProject, registerInstance } from '../support/direct-calls.ts';
import { answer, type Handler, type Instance } from '../support/fleet.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
let model: Instance;
let native: Instance;
let client: OpenAI;

beforeAll(async () => {
  api = await startTestApi();
  model = await registerInstance(api, { name: 'model.chat' });
  native = await registerInstance(api, { name: 'model.native', protocols: ['openai.responses'] });
  client = new OpenAI({ baseURL: `${api.url}/openai/v1`, apiKey: api.apiKey, maxRetries: 0 });
});
beforeEach(() => {
  model.execs.length = 0;
  model.handle = (_, response) =>
    answer(response, 200, { text: 'Hello', model: 'small', usage: { input_tokens: 3, output_tokens: 2 } });
});
afterAll(async () => {
  await Promise.all([model.stop(), native.stop()]);
  await api.close();
});

function inLines(...lines: object[]): Handler {
  return (_, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  };
}

const weather = { type: 'function', name: 'weather', parameters: { type: 'object' }, strict: false } as const;
const patch = { type: 'custom', name: 'apply_patch', description: 'Edits files.' } as const;
const callOf = (id: string, name: string, written: string) => ({
  id,
  type: 'function',
  function: { name, arguments: written },
});

describe('a response', () => {
  test('has text, usage and what the library reads', async () => {
    const { data, response } = await client.responses
      .create({ model: 'chat', input: 'Hi', instructions: 'Be kind.' })
      .withResponse();
    expect(data).toMatchObject({
      object: 'response',
      status: 'completed',
      model: 'small',
      output_text: 'Hello',
      instructions: 'Be kind.',
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5, cost_usd: 0 },
    });
    expect(response.headers.get('x-capstan-decision')).toMatch(/^dec_/);
    expect(model.execs[0]?.input).toEqual({
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hi' },
      ],
    });
  });

  test('calls tools of both kinds, and takes up their results', async () => {
    const calls = [
      callOf('c1', 'weather', '{"place":"Oslo"}'),
      callOf('c2', 'apply_patch', '{"input":"*** Begin"}'),
    ];
    model.handle = (_, response) => answer(response, 200, { text: 'So.', tool_calls: calls });
    const tools = [weather, patch, { type: 'web_search' } as const];
    const { data: first, response } = await client.responses
      .create({ model: 'chat', input: 'Hi', tools, store: false })
      .withResponse();
    expect(first.output).toMatchObject([
      { type: 'message', content: [{ type: 'output_text', text: 'So.' }] },
      { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{"place":"Oslo"}' },
      { type: 'custom_tool_call', call_id: 'c2', name: 'apply_patch', input: '*** Begin' },
    ]);
    expect(response.headers.get('x-capstan-dropped')).toBe('tools[].web_search');
    expect(model.execs[0]?.input.tools).toMatchObject([
      { name: 'weather' },
      { name: 'apply_patch', parameters: { required: ['input'] } },
    ]);
    await client.responses.create({
      model: 'chat',
      store: false,
      tools,
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Hi' },
            { type: 'input_image', image_url: 'https://x.test/a.png', detail: 'auto' },
          ],
        },
        { type: 'reasoning', id: 'rs_1', summary: [] },
        ...(first.output as OpenAI.Responses.ResponseInputItem[]),
        { type: 'function_call_output', call_id: 'c1', output: 'rain' },
        { type: 'custom_tool_call_output', call_id: 'c2', output: 'done' },
      ],
    });
    expect(model.execs[1]?.input.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'image_url', image_url: { url: 'https://x.test/a.png', detail: 'auto' } },
        ],
      },
      { role: 'assistant', content: 'So.', tool_calls: calls },
      { role: 'tool', tool_call_id: 'c1', content: 'rain' },
      { role: 'tool', tool_call_id: 'c2', content: 'done' },
    ]);
  });

  test.each([
    ['pictures come between', [{ type: 'input_image', image_url: 'https://x.test/a.png' }], []],
    ['a message comes between', 'one', [{ role: 'developer', content: 'go on' }]],
    [
      'the user interrupts',
      'one',
      [
        { role: 'user', content: 'stop' },
        { role: 'assistant', content: 'Yes.' },
      ],
    ],
  ])('has the results of parallel calls directly behind these, where %s', async (_, output, between) => {
    await client.responses.create({
      model: 'chat',
      store: false,
      input: [
        { role: 'user', content: 'Hi' },
        { type: 'function_call', call_id: 'c1', name: 'weather', arguments: '{}' },
        { type: 'function_call', call_id: 'c2', name: 'weather', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1', output },
        ...between,
        { type: 'function_call_output', call_id: 'c2', output: 'two' },
        { type: 'function_call_output', call_id: 'lost', output: 'of a call that was left out' },
      ] as OpenAI.Responses.ResponseInputItem[],
    });
    const messages = model.execs[0]?.input.messages as { role: string; tool_call_id?: string }[];
    const ids = messages.map(({ role, tool_call_id = role }) => tool_call_id);
    expect(ids.slice(0, 4)).toEqual(['user', 'assistant', 'c1', 'c2']);
    expect(ids).toHaveLength(6 + between.length - (between.length === 0 ? 0 : 1));
  });

  test.each([false, true])(
    'has tools of namespaces, and tools among its items (stream: %s)',
    async (streamed) => {
      const parameters = { type: 'object' };
      const crm = {
        type: 'namespace',
        name: 'mcp__crm',
        description: 'Customers.',
        tools: [
          { type: 'function', name: 'find', parameters },
          { type: 'custom', name: 'note' },
        ],
      };
      const added = { type: 'additional_tools', role: 'developer', tools: [weather, { ...crm, name: 'b' }] };
      const asked = {
        model: 'chat',
        store: false,
        tools: [crm],
        input: [
          added,
          { role: 'user', content: 'Hi' },
          { type: 'function_call', call_id: 'c0', name: 'find', namespace: 'b', arguments: '{}' },
          { type: 'function_call_output', call_id: 'c0', output: 'x' },
        ],
      } as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming;
      model.handle = (exec, response) => {
        const tools = (exec.input.tools ?? []) as { name: string }[];
        const tool_calls = tools.map(({ name }, at) => callOf(`c${at + 1}`, name, '{"input":"x"}'));
        answer(response, 200, { text: '', tool_calls });
      };
      const made = streamed
        ? await client.responses.stream({ ...asked, stream: true }).finalResponse()
        : await client.responses.create(asked);
      expect(made.output).toMatchObject([
        { type: 'function_call', name: 'find', namespace: 'mcp__crm' },
        { type: 'custom_tool_call', name: 'note', namespace: 'mcp__crm', input: 'x' },
        { type: 'function_call', name: 'weather' },
        { type: 'function_call', name: 'find', namespace: 'b' },
        { type: 'custom_tool_call', name: 'note', namespace: 'b', input: 'x' },
      ]);
      expect(made.output[2]).not.toHaveProperty('namespace');
      const [exec] = model.execs;
      const offered = exec?.input.tools as { name: string }[];
      expect(new Set(offered.map(({ name }) => name)).size).toBe(5);
      expect(exec?.input.messages).toMatchObject([
        { role: 'user' },
        { role: 'assistant', tool_calls: [{ function: { name: offered[3]?.name } }] },
        { role: 'tool' },
      ]);
    },
  );

  test('is JSON of a schema, and incomplete when it was cut', async () => {
    model.handle = (_, response) => answer(response, 200, { json: { rate: 1 }, finish_reason: 'length' });
    const schema = { type: 'object', properties: { rate: { type: 'integer' } } };
    const format = { type: 'json_schema', name: 'rate', schema } as const;
    const made = await client.responses.create({
      model: 'chat',
      input: 'Hi',
      text: { format },
      max_output_tokens: 20,
    });
    expect(made).toMatchObject({
      output_text: '{"rate":1}',
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
    expect(model.execs[0]?.input).toMatchObject({ response_schema: schema, max_output_tokens: 20 });
  });

  test.each([
    [{ background: true }, 'background'],
    [{ conversation: 'conv_1' }, 'conversation'],
    [{ input: [{ type: 'computer_call', id: 'x' }] }, 'input[0].type'],
    [{ input: undefined }, 'input'],
    [{ input: 5 }, 'input'],
  ])('is refused for %j', async (more, param) => {
    const asking = client.responses.create({
      model: 'chat',
      input: 'Hi',
      ...more,
    } as OpenAI.Responses.ResponseCreateParamsNonStreaming);
    await expect(asking).rejects.toMatchObject({ status: 422, param });
    expect(model.execs).toEqual([]);
  });
});

describe('a stream', () => {
  test('has typed events that the library puts together', async () => {
    model.handle = inLines(
      ...[{ reasoning: 'hm' }, { content: 'So' }, { content: ' be it.' }].map((delta) => ({ delta })),
      {
        delta: {
          tool_calls: [
            { index: 0, ...callOf('c1', 'weather', '') },
            { index: 1, ...callOf('c2', 'apply_patch', '{"input":') },
          ],
        },
      },
      {
        delta: {
          tool_calls: [
            { index: 0, function: { arguments: '{"a":1}' } },
            { index: 1, function: { arguments: '"x"}' } },
          ],
        },
      },
      {
        ok: true,
        output: {
          text: 'So be it.',
          reasoning: 'hm',
          tool_calls: [callOf('c1', 'weather', '{"a":1}'), callOf('c2', 'apply_patch', '{"input":"x"}')],
        },
      },
    );
    const stream = client.responses.stream({ model: 'chat', input: 'Hi', tools: [weather, patch] });
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of stream) events.push(event);
    const final = await stream.finalResponse();
    expect(final.output).toMatchObject([
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
      { type: 'message', content: [{ type: 'output_text', text: 'So be it.' }] },
      { type: 'function_call', name: 'weather', call_id: 'c1', arguments: '{"a":1}' },
      { type: 'custom_tool_call', name: 'apply_patch', call_id: 'c2', input: 'x' },
    ]);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
    const types = events.map(({ type }) => type);
    expect([types[0], types[1], types.at(-1)]).toEqual([
      'response.created',
      'response.in_progress',
      'response.completed',
    ]);
    expect(types.filter((type) => type === 'response.output_item.done')).toHaveLength(4);
    expect(new Set(events.flatMap((event) => ('response' in event ? [event.response.id] : []))).size).toBe(1);
  });

  test('that breaks ends with a failed response', async () => {
    model.handle = inLines({ delta: { content: 'So' } }, { ok: false, status: 502, error: 'cut' });
    const body = { model: 'chat', input: 'Hi', stream: true };
    const text = await (await api.call('/openai/v1/responses', { body })).text();
    const last = JSON.parse(text.trim().split('data: ').at(-1) ?? '') as OpenAI.Responses.ResponseFailedEvent;
    expect(last).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { message: expect.stringContaining('cut') } },
    });
  });

  test('that its client leaves cancels the call', async () => {
    model.handle = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      response.write(`${JSON.stringify({ delta: { content: 'So' } })}\n`);
    };
    const stream = await client.responses.create({ model: 'chat', input: 'Hi', stream: true });
    for await (const event of stream) if (event.type === 'response.output_text.delta') break;
    await waitFor('the call to be closed', () => model.execs.at(-1)?.closed);
  });
});

describe('a stored response', () => {
  test.each([false, true])(
    'is continued by its id, of its own project alone (stream: %s)',
    async (streamed) => {
      const name = 'fs.read';
      model.handle = (exec, response) => {
        const tools = (exec.input.tools ?? []) as { name: string }[];
        const tool_calls = tools.map((tool) => callOf('c1', tool.name, '{}'));
        answer(response, 200, tools.length === 0 ? { text: 'Bye' } : { text: '', tool_calls });
      };
      const ask = { model: 'chat', input: 'Hi', instructions: 'Once.', tools: [{ ...weather, name }] };
      const first = streamed
        ? await client.responses.stream(ask).finalResponse()
        : await client.responses.create(ask);
      expect(first.output).toMatchObject([{ type: 'function_call', name }]);
      expect(await client.responses.retrieve(first.id)).toMatchObject({ id: first.id, output: [{ name }] });
      const output = [{ type: 'function_call_output', call_id: 'c1', output: 'data' }] as const;
      const second = await client.responses.create({
        model: 'chat',
        previous_response_id: first.id,
        input: [...output],
      });
      expect(second).toMatchObject({ output_text: 'Bye', previous_response_id: first.id });
      const [asked] = (model.execs[0]?.input.tools ?? []) as { name: string }[];
      expect(model.execs[1]?.input.messages).toEqual([
        { role: 'user', content: 'Hi' },
        { role: 'assistant', tool_calls: [callOf('c1', asked?.name ?? '', '{}')] },
        { role: 'tool', tool_call_id: 'c1', content: 'data' },
      ]);
      const { headers } = await aLimitedProject(api, 1);
      const foreign = await api.call(`/openai/v1/responses/${first.id}`, { headers });
      expect([foreign.status, await foreign.json()]).toMatchObject([404, { error: { code: 'not_found' } }]);
      await expect(client.responses.cancel(first.id)).rejects.toMatchObject({ status: 409 });
      await client.responses.delete(first.id);
      await expect(client.responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 });
    },
  );

  test('is not kept where the client does not want it, or where it is too large', async () => {
    const unstored = await client.responses.create({ model: 'chat', input: 'Hi', store: false });
    await expect(client.responses.retrieve(unstored.id)).rejects.toMatchObject({ status: 404 });
    const large = await client.responses.create({ model: 'chat', input: 'x'.repeat(300_000) }).withResponse();
    expect(large.response.headers.get('x-capstan-not-kept')).toContain('at most');
    await expect(client.responses.retrieve(large.data.id)).rejects.toMatchObject({ status: 404 });
  });
});

describe('a response that is not there', () => {
  const continued = (id: string, more: object) =>
    client.responses.create({ model: 'chat', input: 'More', previous_response_id: id, ...more }).then(
      () => null,
      (error: InstanceType<typeof OpenAI.APIError>) => error,
    );

  test.each([
    ['was never stored', async () => ({ id: 'resp_unknown' })],
    ['has an id of no form', async () => ({ id: '漢"字'.repeat(80) })],
    ['should not be stored', () => client.responses.create({ model: 'chat', input: 'Hi', store: false })],
    [
      'was too large to be stored',
      () => client.responses.create({ model: 'chat', input: 'x'.repeat(300_000) }),
    ],
    [
      'was deleted',
      async () => {
        const made = await client.responses.create({ model: 'chat', input: 'Hi' });
        await client.responses.delete(made.id);
        return made;
      },
    ],
  ])('cannot be continued, in the words that programs know: it %s', async (_, make) => {
    const { id } = await make();
    const asked = model.execs.length;
    for (const more of [{}, { stream: true }, { background: true }]) {
      const error = await continued(id, more);
      expect(error).toBeInstanceOf(OpenAI.BadRequestError);
      expect(error?.error).toEqual({
        message: expect.stringContaining(`no response ${id} is stored`),
        type: 'invalid_request_error',
        param: 'previous_response_id',
        code: 'previous_response_not_found',
      });
    }
    expect(model.execs).toHaveLength(asked);
  });
});

describe('an instance that speaks the protocol', () => {
  test('gets the request as it came, also one that continues a response of its provider', async () => {
    const response = '{"id":"resp_provider","object":"response","output":[]}';
    native.handle = (_, answering) => answer(answering, 200, { protocol: 'openai.responses', response });
    const body =
      '{"model": "native", "input": [{"type":"computer_call"}], "previous_response_id":"resp_provider", "background":true}';
    const answered = await fetch(`${api.url}/openai/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api.apiKey}`, 'content-type': 'application/json' },
      body,
    });
    expect(await answered.text()).toBe(response);
    expect(native.execs.at(-1)?.input).toMatchObject({ protocol: 'openai.responses', request: body });
  });

  test('continues a response that Capstan keeps in the neutral form', async () => {
    const first = await client.responses.create({ model: 'chat', input: 'Hi' });
    native.handle = (_, answering) => answer(answering, 200, { text: 'Again' });
    const second = await client.responses.create({
      model: 'native',
      input: 'More',
      previous_response_id: first.id,
    });
    expect(second.output_text).toBe('Again');
    expect(native.execs.at(-1)?.input.messages).toHaveLength(3);
  });
});
