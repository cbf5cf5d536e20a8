import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { ClientProtocol } from '../../src/contracts/model-protocol.ts';
import { ModelResult } from '../../src/contracts/openai.ts';
import type { Json } from '../../src/contracts/primitives.ts';
import { createCutAnswer } from '../../src/model-protocols/cut-answer.ts';
import { createToldAnswer } from '../../src/model-protocols/told-answer.ts';

function cut(protocol: ClientProtocol | null, parts: readonly Json[]) {
  const answer = createCutAnswer(protocol);
  for (const part of parts) answer.note(part);
  return answer.end();
}

function cutEvents(protocol: ClientProtocol, events: readonly object[]) {
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const ended = cut(protocol, [{ events: text }]);
  const last = ended?.parts.map((part) => (part as { events: string }).events).join('') ?? '';
  const closing = last.split('\n').filter((line) => line.startsWith('data:'));
  return { output: ended?.output, closing: closing.map((line) => line.slice('data: '.length)) };
}

describe('an answer in the neutral form', () => {
  it('is the text, the thinking and the calls that have come, and has reached its length', () => {
    const call = { index: 0, id: 'c1', function: { name: 'write', arguments: '{"a"' } };
    const parts: Json[] = [
      'He',
      { content: 'llo', reasoning: 'hm' },
      { tool_calls: [call] },
      { tool_calls: [{ index: 0, function: { arguments: ':1' } }] },
    ];
    expect(cut(null, parts)?.output).toEqual({
      text: 'Hello',
      reasoning: 'hm',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'write', arguments: '{"a":1' } }],
      finish_reason: 'length',
    });
  });

  it('keeps several choices apart', () => {
    const output = cut(null, [
      { index: 1, content: 'two' },
      { index: 0, content: 'one' },
    ])?.output;
    expect(output).toEqual({
      choices: [
        { text: 'one', finish_reason: 'length' },
        { text: 'two', finish_reason: 'length' },
      ],
    });
  });

  it('is a result that equals all parts of its stream', () => {
    const part = fc.record({ index: fc.nat(2), content: fc.string() });
    fc.assert(
      fc.property(fc.array(part, { minLength: 1 }), (parts) => {
        const all = [
          { index: 0, content: '' },
          { index: 1, content: '' },
          { index: 2, content: '' },
          ...parts,
        ];
        const told = createToldAnswer();
        for (const one of all) told.note(one);
        expect(told.missing(ModelResult.parse(cut(null, all)?.output))).toEqual([]);
      }),
      { numRuns: runs(200) },
    );
  });

  it('is none when nothing has come', () => {
    expect([cut(null, []), cut('openai.chat', [])]).toEqual([null, null]);
  });
});

describe('a stream of a provider', () => {
  it.each([
    ['data: {}', false],
    ['data: {}\n', false],
    ['data: {}\n\n', true],
    ['data: {}\r\n\r\n', true],
  ])('may end between events: %j', (events, may) => {
    const answer = createCutAnswer('openai.chat');
    answer.note({ events });
    expect(answer.mayEnd()).toBe(may);
  });

  it('of openai.chat ends each choice that is open, and is done', () => {
    const chunk = (index: number, finish_reason: string | null) => ({
      id: 'chatcmpl-1',
      created: 7,
      model: 'm',
      choices: [{ index, delta: { content: 'x' }, finish_reason }],
    });
    const { closing } = cutEvents('openai.chat', [chunk(0, null), chunk(1, null), chunk(1, 'stop')]);
    const last = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 7, model: 'm' };
    expect(closing.slice(0, -1).map((line) => JSON.parse(line))).toEqual([
      { ...last, choices: [{ index: 0, delta: {}, finish_reason: 'length' }] },
    ]);
    expect(closing.at(-1)).toBe('[DONE]');
  });

  it('of anthropic.messages ends its open block and the message, with the reason', () => {
    const { closing, output } = cutEvents('anthropic.messages', [
      { type: 'message_start', message: { id: 'msg' } },
      { type: 'content_block_start', index: 0 },
      { type: 'content_block_stop', index: 0 },
      { type: 'content_block_start', index: 1 },
      { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hel' } },
    ]);
    const events = closing.map((line) => JSON.parse(line));
    expect(events.map(({ type, index }) => [type, index])).toEqual([
      ['content_block_stop', 1],
      ['message_delta', undefined],
      ['message_stop', undefined],
    ]);
    expect(events[1].delta.stop_reason).toBe('max_tokens');
    expect(output).toEqual({ protocol: 'anthropic.messages' });
  });

  it('of openai.responses is incomplete, with what has come of its items', () => {
    const { closing } = cutEvents('openai.responses', [
      {
        type: 'response.created',
        sequence_number: 0,
        response: { id: 'resp', status: 'in_progress', output: [] },
      },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'message', id: 'i0', role: 'assistant' },
      },
      { type: 'response.output_text.delta', output_index: 0, item_id: 'i0', delta: 'Hel' },
      { type: 'response.output_text.delta', output_index: 0, item_id: 'i0', delta: 'lo' },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { type: 'message', id: 'i0', content: ['whole'] },
      },
      {
        type: 'response.output_item.added',
        output_index: 1,
        item: { type: 'function_call', id: 'i1', name: 'f' },
      },
      {
        type: 'response.function_call_arguments.delta',
        output_index: 1,
        item_id: 'i1',
        delta: '{"a"',
        sequence_number: 6,
      },
    ]);
    expect(closing.map((line) => JSON.parse(line))).toEqual([
      {
        type: 'response.incomplete',
        sequence_number: 7,
        response: {
          id: 'resp',
          status: 'incomplete',
          incomplete_details: { reason: 'max_output_tokens' },
          output: [
            { type: 'message', id: 'i0', content: ['whole'] },
            { type: 'function_call', id: 'i1', name: 'f', status: 'incomplete', arguments: '{"a"' },
          ],
        },
      },
    ]);
  });
});
