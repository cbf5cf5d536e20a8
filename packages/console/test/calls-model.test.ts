import { describe, expect, test } from 'vitest';
import { describeTokens } from '../src/calls/call-model.ts';
import { toCallsPath } from '../src/calls/calls-path.ts';
import { toConversation } from '../src/calls/conversation-model.ts';
import { findEntries } from '../src/layout/palette-model.ts';

const input = {
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
  ],
  tools: [{ type: 'function', function: { name: 'weather' } }],
};
const asked = [
  { role: 'system', kind: 'text', text: 'Be brief.' },
  { role: 'user', kind: 'text', text: 'Weather?' },
];
const answered = [
  { role: 'assistant', kind: 'thinking', text: 'A tool knows.' },
  { role: 'assistant', kind: 'text', text: 'One moment.' },
  { role: 'assistant', kind: 'tool call', name: 'weather', text: '{"city":"Bonn"}' },
];

const calls = [{ id: 'c1', function: { name: 'weather', arguments: '{"city":"Bonn"}' } }];
const message = {
  role: 'assistant',
  content: 'One moment.',
  reasoning_content: 'A tool knows.',
  tool_calls: calls,
};
const events = (...all: readonly object[]) => all.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('');
const delta = (one: object) => ({ choices: [{ index: 0, delta: one }] });

const outputs = {
  neutral: { text: 'One moment.', reasoning: 'A tool knows.', tool_calls: calls },
  'chat body': { response: JSON.stringify({ choices: [{ message }] }) },
  'messages body': {
    response: JSON.stringify({
      content: [
        { type: 'thinking', thinking: 'A tool knows.' },
        { type: 'text', text: 'One moment.' },
        { type: 'tool_use', name: 'weather', input: { city: 'Bonn' } },
      ],
    }),
  },
  'responses body': {
    response: JSON.stringify({
      output: [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'A tool knows.' }] },
        { type: 'message', content: [{ type: 'output_text', text: 'One moment.' }] },
        { type: 'function_call', name: 'weather', arguments: '{"city":"Bonn"}' },
      ],
    }),
  },
  'chat stream': {
    events: `${events(
      delta({ reasoning_content: 'A tool ' }),
      delta({ reasoning_content: 'knows.' }),
      delta({ content: 'One ' }),
      delta({ content: 'moment.' }),
      delta({ tool_calls: [{ index: 0, function: { name: 'weather', arguments: '{"city":' } }] }),
      delta({ tool_calls: [{ index: 0, function: { arguments: '"Bonn"}' } }] }),
    )}data: [DONE]\n\n`,
  },
  'messages stream': {
    events: events(
      { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'A tool knows.' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'One moment.' } },
      {
        type: 'content_block_start',
        index: 2,
        content_block: { type: 'tool_use', name: 'weather', input: {} },
      },
      { type: 'content_block_delta', index: 2, delta: { partial_json: '{"city":' } },
      { type: 'content_block_delta', index: 2, delta: { partial_json: '"Bonn"}' } },
    ),
  },
  'responses stream': {
    events: events(
      { type: 'response.reasoning_summary_text.delta', output_index: 0, delta: 'A tool knows.' },
      { type: 'response.output_text.delta', output_index: 1, delta: 'One moment.' },
      {
        type: 'response.output_item.added',
        output_index: 2,
        item: { type: 'function_call', name: 'weather' },
      },
      { type: 'response.function_call_arguments.delta', output_index: 2, delta: '{"city":"Bonn"}' },
    ),
  },
};

describe('a conversation', () => {
  test.each(Object.entries(outputs))('has messages, thinking and calls of tools: %s', (_, output) => {
    const shown = toConversation({ input, output });
    const said = shown?.said.map((one) => ({ ...one, text: one.text.replace(/\s*([{}:])\s*/g, '$1') }));
    const wanted = [...asked, ...answered].map((one) => ({
      ...one,
      text: one.text.replace(/\s*([{}:])\s*/g, '$1'),
    }));
    expect([shown?.tools, said]).toEqual([['weather'], wanted]);
  });

  test('of a failed call has the question alone', () => {
    expect(toConversation({ input, output: null })?.said).toEqual(asked);
  });

  test('is none where the input has no messages', () => {
    expect(toConversation({ input: { path: 'media://a' }, output: {} })).toBeNull();
  });

  test.each([
    [{}],
    [{ response: 'cut {' }],
    [{ events: 'data: {"cut' }],
    ['120000 bytes, which are not kept'],
  ])('is shown although its answer is cut: %j', (output) => {
    expect(toConversation({ input, output })?.said.slice(0, 2)).toEqual(asked);
  });
});

test('tokens are described by class', () => {
  expect(describeTokens({ input: 1_030, output: 12, cached_read: 20, reasoning: 4 })).toBe(
    '1,030 in (20 cached), 12 out (4 thought)',
  );
  expect(describeTokens({ output: 0 })).toBe('0 out');
  expect(describeTokens(null)).toBeNull();
});

test('a day in the address is a day of the browser, with its end', () => {
  const path = toCallsPath({ since: '2026-03-01', until: '2026-03-01', key: 'key_1' }, {});
  const query = new URLSearchParams(path.split('?')[1]);
  const span = Date.parse(String(query.get('until'))) - Date.parse(String(query.get('since')));
  expect([span, query.get('key')]).toEqual([86_400_000, 'key_1']);
});

test('the id of a decision leads to its call', () => {
  const [found] = findEntries([], ' dec_01a223e6-0257-710a-a1a2-4f154c6be62e ');
  expect(found).toMatchObject({ hint: 'call', href: '/decisions/dec_01a223e6-0257-710a-a1a2-4f154c6be62e' });
});
