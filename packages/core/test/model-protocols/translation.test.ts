/** What becomes of the fields of a request when an instance does not speak its protocol. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MessagesRequest } from '../../src/contracts/anthropic.ts';
import { ChatRequest } from '../../src/contracts/openai.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import { translateMessages } from '../../src/model-protocols/anthropic-request.ts';
import { chatFields, type FieldTable, messagesFields } from '../../src/model-protocols/fields.ts';
import { translateChat } from '../../src/model-protocols/openai-request.ts';
import { restoreDelta, restoreResult } from '../../src/model-protocols/translation.ts';

const user = { role: 'user', content: 'hi' };
const called = { id: 'call_1', function: { name: 'f', arguments: '{}' } };
const call = { ...called, type: 'function' };
const done = { role: 'tool', tool_call_id: 'call_1', content: 'rain' };
const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
const png = 'iVBORw0KGgo=';

function turn(assistant: object = {}, result: object = {}) {
  return [
    user,
    { role: 'assistant', content: null, tool_calls: [call], ...assistant },
    { ...done, ...result },
  ];
}

function chat(more: object) {
  return translateChat(ChatRequest.parse({ model: 'm', messages: [user], ...more }));
}

function message(more: object) {
  return translateMessages(MessagesRequest.parse({ model: 'm', max_tokens: 100, messages: [user], ...more }));
}

function messagesOf({ input }: { readonly input: JsonObject }): unknown[] {
  return input.messages as unknown[];
}

describe('a chat completion', () => {
  test.each<[name: string, more: object, messages: unknown[]]>([
    [
      'a name of a tool message',
      { messages: turn({}, { name: 'f' }) },
      [user, { role: 'assistant', tool_calls: [call] }, { ...done, name: undefined }],
    ],
    [
      'echoed pieces of a stream',
      { messages: turn({ tool_calls: [{ index: 0, ...call }], index: 0 }) },
      [user, { role: 'assistant', tool_calls: [call] }, done],
    ],
    [
      'a call without a type',
      { messages: turn({ tool_calls: [called] }) },
      [user, { role: 'assistant', tool_calls: [call] }, done],
    ],
    [
      'arguments as an object',
      { messages: turn({ tool_calls: [{ ...call, function: { name: 'f', arguments: { a: 1 } } }] }) },
      [
        user,
        { role: 'assistant', tool_calls: [{ ...call, function: { name: 'f', arguments: '{"a":1}' } }] },
        done,
      ],
    ],
    [
      'no arguments',
      { messages: turn({ tool_calls: [{ ...call, function: { name: 'f', arguments: '' } }] }) },
      [user, { role: 'assistant', tool_calls: [call] }, done],
    ],
    [
      'a refusal',
      { messages: [user, { role: 'assistant', content: null, refusal: 'no' }, user] },
      [user, { role: 'assistant', content: 'no' }, user],
    ],
    ['an empty answer', { messages: [user, { role: 'assistant', content: '' }, user] }, [user, user]],
    [
      'a tool without a result',
      { messages: turn({}, { content: null }) },
      [user, { role: 'assistant', tool_calls: [call] }, { ...done, content: '' }],
    ],
    [
      'an empty user',
      { messages: [{ role: 'user', content: '' }] },
      [{ role: 'user', content: [{ type: 'text', text: '' }] }],
    ],
    ['an empty user among others', { messages: [{ role: 'user', content: [] }, user] }, [user]],
    ['an empty system', { messages: [{ role: 'system', content: '' }, user] }, [user]],
    [
      'only a system',
      { messages: [{ role: 'system', content: 'say hi' }] },
      [{ role: 'user', content: 'say hi' }],
    ],
    [
      'an image as a text',
      {
        messages: [
          { role: 'user', content: [{ type: 'image_url', image_url: `data:image/png;base64,${png}` }] },
        ],
      },
      [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }],
        },
      ],
    ],
    [
      'an image with line breaks, a parameter and another detail',
      {
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'image_url',
                image_url: { url: 'data:image/png;charset=utf-8;base64,iVBO\nRw0KGgo=', detail: 'original' },
              },
            ],
          },
        ],
      },
      [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'high' } },
          ],
        },
      ],
    ],
    [
      'an image in the result of a tool',
      {
        messages: turn(
          {},
          {
            content: [
              { type: 'text', text: 'a' },
              { type: 'image_url', image_url: { url: 'https://x.test/a.png' } },
            ],
          },
        ),
      },
      [
        user,
        { role: 'assistant', tool_calls: [call] },
        { ...done, content: 'a' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x.test/a.png' } }] },
      ],
    ],
  ])('takes %s', (_, more, messages) => {
    const { refused, ...translation } = chat(more);
    expect([messagesOf(translation), refused]).toEqual([messages, []]);
  });

  test.each<[object, string[]]>([
    [
      {
        tools: null,
        tool_choice: null,
        response_format: null,
        functions: null,
        logit_bias: null,
        top_logprobs: null,
      },
      [],
    ],
    [
      {
        stop: [],
        max_tokens: -1,
        tools: [],
        modalities: ['text'],
        logprobs: false,
        logit_bias: {},
        verbosity: 'medium',
      },
      [],
    ],
    [
      {
        stop: '',
        stream_options: null,
        n: null,
        seed: null,
        user: null,
        tool_choice: 'auto',
        metadata: { a: 'b' },
      },
      [],
    ],
    [
      { foo: 1, chat_template_kwargs: { enable_thinking: false }, min_p: 0.1 },
      ['foo', 'chat_template_kwargs', 'min_p'],
    ],
    [{ messages: [{ ...user, cache_control: { type: 'ephemeral' } }] }, ['messages[].cache_control']],
    [
      {
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }] },
        ],
      },
      ['messages[].content[].cache_control'],
    ],
    [
      { messages: turn({ reasoning_content: 'hm', reasoning_details: [], x: 1 }) },
      ['messages[].reasoning_content', 'messages[].x'],
    ],
    [
      {
        messages: turn({ tool_calls: [{ ...call, extra_content: { google: { thought_signature: 'x' } } }] }),
      },
      ['messages[].tool_calls[].extra_content'],
    ],
    [{ tools: [{ ...tool, cache_control: { type: 'ephemeral' } }] }, ['tools[].cache_control']],
    [{ 'response_format.type': 'text', 'tools[].type': 'x' }, ['response_format.type', 'tools[].type']],
    [{ tools: [{ ...tool, function: { ...tool.function, strict: true } }] }, ['tools[].function.strict']],
  ])('of %j names what is left out: %j', (more, dropped) => {
    expect(chat(more)).toMatchObject({ dropped, refused: [] });
  });

  test.each<[object, string]>([
    [{ logprobs: true }, '/logprobs'],
    [{ top_logprobs: 3 }, '/top_logprobs'],
    [{ modalities: ['text', 'audio'] }, '/modalities'],
    [{ functions: [{ name: 'f' }] }, '/functions'],
    [{ tools: [{ type: 'custom', custom: { name: 'f' } }] }, '/tools/0/type'],
    [{ messages: [user, { role: 'function', name: 'f', content: 'x' }] }, '/messages/1/role'],
    [
      { messages: [{ role: 'user', content: [{ type: 'video_url', video_url: { url: 'x' } }] }] },
      '/messages/0/content/0/type',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] },
      '/messages/0/content/0/file',
    ],
  ])('of %j is refused at %s', (more, pointer) => {
    expect(chat(more).refused.map((one) => one.pointer)).toEqual([pointer]);
  });

  test('offers what only some instances take', () => {
    const asked = { reasoning_effort: 'low', verbosity: 'low', parallel_tool_calls: false, top_k: 20 };
    const { input, offered } = chat(asked);
    expect(input).toMatchObject(asked);
    expect(Object.keys(offered).toSorted()).toEqual(Object.keys(asked).toSorted());
    expect(chat({ parallel_tool_calls: true }).input).not.toHaveProperty('parallel_tool_calls');
  });

  test.each<[object, effort: unknown, name: string | undefined, dropped: string[]]>([
    [{ reasoning: { effort: 'high' } }, 'high', 'reasoning.effort', []],
    [
      { reasoning: { effort: 'high', max_tokens: 9 }, reasoning_effort: 'low' },
      'low',
      'reasoning_effort',
      ['reasoning.max_tokens'],
    ],
    [{ reasoning: { exclude: true } }, undefined, undefined, ['reasoning.exclude']],
    [{ reasoning: {}, reasoning_effort: null }, undefined, undefined, []],
  ])('of %j asks for the effort %s', (more, effort, name, dropped) => {
    const translation = chat(more);
    expect(translation.input.reasoning_effort).toBe(effort);
    expect(translation.offered.reasoning_effort).toBe(name);
    expect(translation.dropped).toEqual(dropped);
  });

  test('leaves out the tools that are not allowed', () => {
    const tools = ['f', 'g'].map((name) => ({ type: 'function', function: { name } }));
    const allowed = { mode: 'required', tools: [{ type: 'function', function: { name: 'g' } }] };
    const { input } = chat({ tools, tool_choice: { type: 'allowed_tools', allowed_tools: allowed } });
    expect(input).toMatchObject({ tools: [{ name: 'g' }], tool_choice: 'required' });
  });
});

const asked = { type: 'tool_use', id: 't1', name: 'f', input: {} };
const result = (content: unknown) => [
  user,
  { role: 'assistant', content: [asked] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content }] },
];
const thought = { type: 'thinking', thinking: 'hm', signature: 'x' };

describe('a message', () => {
  test.each<[name: string, more: object, messages: unknown[]]>([
    [
      'blocks of the system',
      {
        system: [
          { type: 'text', text: 'You are A.' },
          { type: 'text', text: 'Rules' },
        ],
      },
      [{ role: 'system', content: 'You are A.\nRules' }, user],
    ],
    [
      'blocks of a result',
      {
        messages: result([
          { type: 'text', text: 'line1' },
          { type: 'text', text: 'line2' },
        ]),
      },
      [
        user,
        { role: 'assistant', tool_calls: [{ ...call, id: 't1' }] },
        { role: 'tool', tool_call_id: 't1', content: 'line1\nline2' },
      ],
    ],
    [
      'a search result',
      {
        messages: result([
          { type: 'search_result', title: 'T', source: 's', content: [{ type: 'text', text: 'x' }] },
        ]),
      },
      [
        user,
        { role: 'assistant', tool_calls: [{ ...call, id: 't1' }] },
        { role: 'tool', tool_call_id: 't1', content: 'T\ns\nx' },
      ],
    ],
    ['thoughts alone', { messages: [user, { role: 'assistant', content: [thought] }, user] }, [user, user]],
    [
      'an empty turn',
      {
        messages: [
          user,
          { role: 'assistant', content: [] },
          { role: 'user', content: [{ type: 'text', text: '' }] },
          user,
        ],
      },
      [user, user],
    ],
    [
      'nothing',
      { messages: [{ role: 'user', content: '' }] },
      [{ role: 'user', content: [{ type: 'text', text: '' }] }],
    ],
    [
      'a call without input',
      { messages: [user, { role: 'assistant', content: [{ ...asked, input: undefined }] }] },
      [user, { role: 'assistant', tool_calls: [{ ...call, id: 't1' }] }],
    ],
  ])('takes %s', (_, more, messages) => {
    const { refused, ...translation } = message(more);
    expect([messagesOf(translation), refused]).toEqual([messages, []]);
  });

  test.each<[object, string[]]>([
    [
      {
        thinking: { type: 'adaptive' },
        container: null,
        mcp_servers: [],
        betas: ['x'],
      },
      [],
    ],
    [
      { context_management: { edits: [{ type: 'clear' }] }, cache_control: { type: 'ephemeral' } },
      ['context_management', 'cache_control'],
    ],
    [
      { system: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }] },
      ['system[].cache_control'],
    ],
    [
      { tools: [{ name: 'f', input_schema: {}, cache_control: { type: 'ephemeral' }, strict: true }] },
      ['tools[].cache_control', 'tools[].strict'],
    ],
    [
      { messages: [user, { role: 'assistant', content: [thought, { type: 'text', text: 'a' }] }, user] },
      ['messages[].content[].thinking'],
    ],
    [{ output_config: { effort: 'high', task_budget: { type: 'tokens' } } }, ['output_config.task_budget']],
    [{ foo: 1, speed: 'fast' }, ['foo', 'speed']],
  ])('of %j names what is left out: %j', (more, dropped) => {
    const translation = message(more);
    expect([[...translation.dropped].toSorted(), translation.refused]).toEqual([dropped.toSorted(), []]);
  });

  test.each<[object, string]>([
    [{ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, '/tools/0/type'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }] }] },
      '/messages/0/content/0/source',
    ],
    [{ messages: [{ role: 'user', content: [{ type: 'video' }] }] }, '/messages/0/content/0/type'],
    [{ mcp_servers: [{ url: 'https://x.test' }] }, '/mcp_servers'],
    [{ thread: { type: 'create' } }, '/thread'],
    [{ thread: { type: 'continue', previous_message_id: 'msg_1' } }, '/thread'],
  ])('of %j is refused at %s', (more, pointer) => {
    expect(message(more).refused.map((one) => one.pointer)).toEqual([pointer]);
  });

  test.each<[object, string | undefined]>([
    [{ thinking: { type: 'enabled', budget_tokens: 10 } }, 'low'],
    [{ thinking: { type: 'enabled', budget_tokens: 90 } }, 'high'],
    [{ output_config: { effort: 'max' } }, 'high'],
    [{ thinking: { type: 'adaptive' }, output_config: { effort: 'low' } }, 'low'],
    [{ thinking: { type: 'adaptive' } }, 'medium'],
    [{ thinking: { type: 'disabled' }, output_config: { effort: 'low' } }, undefined],
    [{}, undefined],
  ])('of %j asks for the effort %s', (more, effort) => {
    expect(message(more).input.reasoning_effort).toBe(effort);
  });
});

describe('names of tools', () => {
  const long = 'm'.repeat(128);
  test.each([long, `${long.slice(1)}n`, 'fs.read', 'Größe', 'mcp/server:tool'])(
    '%s is a plain one for the model, and comes back',
    (name) => {
      const { input, toolNames } = chat({ tools: [{ type: 'function', function: { name } }, tool] });
      const [plain, other] = (input.tools as { name: string }[]).map((one) => one.name);
      expect([plain, other]).toEqual([expect.stringMatching(/^[\w-]{1,64}$/), 'f']);
      const calls = [{ ...call, function: { name: plain ?? '', arguments: '{}' } }, call];
      const own = [name, 'f'];
      const namesOf = (all: unknown) => (all as (typeof call)[]).map((one) => one.function.name);
      expect(namesOf(restoreResult({ tool_calls: calls as never }, toolNames).tool_calls)).toEqual(own);
      const delta = restoreDelta({ tool_calls: calls as never }, toolNames) as JsonObject;
      expect(namesOf(delta.tool_calls)).toEqual(own);
      const turns = [user, { role: 'assistant', content: [{ ...asked, name }] }];
      const again = message({ tools: [{ name, input_schema: {} }], messages: turns }).input as JsonObject;
      expect(JSON.stringify(again)).toContain(`"name":"${plain}"`);
    },
  );

  test('that differ have different plain names', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ minLength: 1, maxLength: 128 }), { maxLength: 20 }), (names) => {
        const { input } = chat({ tools: names.map((name) => ({ type: 'function', function: { name } })) });
        expect(new Set(((input.tools ?? []) as { name: string }[]).map(({ name }) => name)).size).toBe(
          names.length,
        );
      }),
    );
  });
});

describe('any request', () => {
  const protocols: [string, FieldTable, (body: JsonObject) => ReturnType<typeof chat>][] = [
    ['chat', chatFields, (body) => translateChat({ ...body, model: 'm', messages: [user] } as never)],
    [
      'messages',
      messagesFields,
      (body) => translateMessages({ ...body, model: 'm', messages: [user], max_tokens: 9 } as never),
    ],
  ];

  test.each(protocols)('%s: each field is translated, ignored, named or refused', (_, table, translate) => {
    const fields = Object.keys(table).filter((path) => !/[.[]/.test(path));
    const own = [
      'messages',
      'model',
      'max_tokens',
      'tools',
      'tool_choice',
      'system',
      'thinking',
      'output_config',
    ];
    const others = [
      'output_format',
      'response_format',
      'stop',
      'stop_sequences',
      'stream_options',
      'max_completion_tokens',
    ];
    const simple = fields.filter((name) => !own.includes(name) && !others.includes(name));
    fc.assert(
      fc.property(fc.subarray(simple), fc.array(fc.stringMatching(/^x_[a-z]{1,8}$/)), (names, unknown) => {
        const body = Object.fromEntries([...names, ...unknown].map((name) => [name, 'something']));
        const { dropped, refused } = translate(body);
        const fateOf = (fate: string) => names.filter((name) => table[name]?.fate === fate);
        expect([...dropped].toSorted()).toEqual([...new Set([...fateOf('dropped'), ...unknown])].toSorted());
        expect(refused.map(({ pointer }) => pointer).toSorted()).toEqual(
          fateOf('refused')
            .map((name) => `/${name}`)
            .toSorted(),
        );
      }),
    );
  });

  test('is translated or refused, whatever its messages hold', () => {
    const anyJson = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<never>;
    const anyTurn = fc.record({
      role: fc.constantFrom('user', 'assistant', 'system', 'tool'),
      content: anyJson,
      tool_calls: anyJson,
    });
    fc.assert(
      fc.property(fc.array(anyTurn, { minLength: 1 }), (messages) => {
        const parsed = ChatRequest.safeParse({ model: 'm', messages });
        if (parsed.success) translateChat(parsed.data);
        const other = MessagesRequest.safeParse({ model: 'm', max_tokens: 1, messages });
        if (other.success) translateMessages(other.data);
      }),
    );
  });
});
