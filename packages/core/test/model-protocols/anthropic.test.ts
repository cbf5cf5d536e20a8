import { expect, test } from 'vitest';
import type { ModelResult } from '../../src/contracts/openai.ts';
import { createMessageWriter, toMessage } from '../../src/model-protocols/anthropic.ts';

const head = { id: 'msg_1', model: 'small' };
const call = { id: 'call_1', type: 'function' as const, function: { name: 'f', arguments: '{}' } };

const ends: [what: string, ModelResult, reason: string, sequence: string | null][] = [
  ['a normal end', { text: 'a', finish_reason: 'stop' }, 'end_turn', null],
  ['a stop without a name', { text: 'a', finish_reason: 'stop', stop_sequence: null }, 'end_turn', null],
  ['a named stop', { text: 'a', finish_reason: 'stop', stop_sequence: 'END' }, 'stop_sequence', 'END'],
  ['the limit', { text: 'a', finish_reason: 'length', stop_sequence: 'END' }, 'max_tokens', null],
  ['calls of tools', { tool_calls: [call], finish_reason: 'tool_calls' }, 'tool_use', null],
];

test.each(ends)('%s is reported in a message and in a stream', (_, result, stop_reason, stop_sequence) => {
  expect(toMessage(head, result, 0)).toMatchObject({ stop_reason, stop_sequence });
  const events = createMessageWriter(head).close(result, 0);
  const data = events.map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)));
  expect(data.find(({ type }) => type === 'message_delta').delta).toEqual({ stop_reason, stop_sequence });
});
