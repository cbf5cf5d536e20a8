import { expect, it } from 'vitest';
import { tokensOfPart } from '../../src/call/seen-use.ts';

const event = (data: object) => ({ events: `data: ${JSON.stringify(data)}\n\n` });

it.each([
  ['an empty part', {}, 1],
  ['a short text', 'a', 1],
  ['a text', 'twelve bytes', 6],
  ['a text of another script', { content: '日本語' }, 5],
  ['thinking', { reasoning: 'twelve bytes' }, 6],
  ['arguments of a tool', { tool_calls: [{ index: 0, function: { arguments: '{"a":12345}' } }] }, 6],
  [
    'an event of openai.chat',
    event({ id: 'x'.repeat(90), choices: [{ delta: { content: 'twelve bytes' } }] }),
    6,
  ],
  ['an event of anthropic.messages', event({ delta: { type: 'text_delta', text: 'twelve bytes' } }), 6],
  ['a part of openai.responses', event({ type: 'response.output_text.delta', delta: 'twelve bytes' }), 6],
  ['an event that repeats the text', event({ type: 'response.output_text.done', text: 'twelve bytes' }), 1],
  ['a comment', { events: ': ping\n\n' }, 1],
  ['a line of an event that is no data', { events: 'event: "text":"twelve bytes"\n\n' }, 1],
  ['a tool without arguments', { tool_calls: [{ index: 0, function: { name: 'x' } }] }, 1],
  ['a tool without a function', { tool_calls: [{ index: 0, function: 'twelve bytes' }] }, 1],
])('%s counts at most so many tokens', (_, part, tokens) => {
  expect(tokensOfPart(part)).toBe(tokens);
});
