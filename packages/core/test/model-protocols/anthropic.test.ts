import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { measureExcessMs } from '../../../../test/support/linear-time.ts';
import type { ModelResult } from '../../src/contracts/openai.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
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
  const events = createMessageWriter(head, () => 7).close(result, 0);
  const data = events.map((event) => JSON.parse(event.slice(event.indexOf('data: ') + 6)));
  const { delta } = data.find(({ type }) => type === 'message_delta');
  expect(delta).toEqual({ stop_reason, stop_sequence, stop_details: null, container: null });
});

test('a text has a list of citations, whole and in a stream: libraries require one, and some refuse null', () => {
  expect(toMessage(head, { text: 'a' }, 0).content).toEqual([{ type: 'text', text: 'a', citations: [] }]);
  const [begun = ''] = createMessageWriter(head, () => 7).part({ content: 'a' });
  expect(begun).toContain('"content_block":{"type":"text","text":"","citations":[]}');
});

interface Told {
  readonly type: string;
  readonly index: number;
  readonly content_block?: { readonly type: string; readonly name?: string };
  readonly delta?: { readonly text?: string; readonly thinking?: string; readonly partial_json?: string };
}

/** Reads events as strict programs do: pieces belong to the open block, and blocks follow one another. */
function readBlocks(events: readonly string[]) {
  const blocks: { type: string; name?: string | undefined; text: string }[] = [];
  let open: number | null = null;
  for (const event of events) {
    const { type, index, content_block, delta } = JSON.parse(
      event.slice(event.indexOf('data: ') + 6),
    ) as Told;
    if (type === 'content_block_start') {
      expect([open, index]).toEqual([null, blocks.length]);
      blocks.push({ type: content_block?.type ?? '', name: content_block?.name, text: '' });
      open = index;
    } else if (type === 'content_block_delta') {
      expect(index).toBe(open);
      const block = blocks.at(-1);
      if (block) block.text += delta?.text ?? delta?.thinking ?? delta?.partial_json ?? '';
    } else if (type === 'content_block_stop') {
      expect(index).toBe(open);
      open = null;
    }
  }
  expect(open).toBeNull();
  return blocks;
}

function write(deltas: readonly object[]) {
  const writer = createMessageWriter(head, () => 7);
  const parts = deltas.flatMap((delta) => writer.part(delta as never));
  return readBlocks([...parts, ...writer.close({ text: '', finish_reason: 'stop' }, 0)]);
}

const begin = (index: number) => ({
  tool_calls: [{ index, id: `c${index}`, function: { name: `f${index}`, arguments: '' } }],
});
const piece = (index: number, written: string) => ({
  tool_calls: [{ index, function: { arguments: written } }],
});

describe('the blocks of a stream', () => {
  test.each<[name: string, deltas: object[], blocks: string[]]>([
    ['a text between calls', [begin(0), { content: 'so' }, piece(0, '{"a":1}')], ['f0 {"a":1}', 'text so']],
    [
      'two calls piece by piece',
      [begin(0), begin(1), piece(0, '{"a"'), piece(1, '{}'), piece(0, ':1}')],
      ['f0 {"a":1}', 'f1 {}'],
    ],
    [
      'thoughts, then a text',
      [{ reasoning: 'hm' }, { reasoning: ', yes' }, { content: 'a' }],
      ['thinking hm, yes', 'text a'],
    ],
    ['calls without arguments', [begin(0), begin(1)], ['f0 ', 'f1 ']],
    [
      'a brace within a text',
      [begin(0), piece(0, '{"a":"}'), begin(1), piece(0, '"}')],
      ['f0 {"a":"}"}', 'f1 '],
    ],
  ])('%s', (_, deltas, blocks) => {
    expect(write(deltas).map(({ type, name, text }) => `${name ?? type} ${text}`)).toEqual(blocks);
  });

  test('hold all pieces of all calls, however these are mixed', () => {
    const calls = fc.array(fc.jsonValue(), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(calls, fc.array(fc.nat(3), { maxLength: 60 }), fc.nat(7), (values, turns, size) => {
        const texts = values.map((value) => JSON.stringify({ value }));
        const left = texts.map((text) => text.match(new RegExp(`[^]{1,${size + 1}}`, 'gu')) ?? []);
        const deltas: object[] = texts.map((_, index) => begin(index));
        for (const turn of turns) {
          const index = turn % texts.length;
          const next = left[index]?.shift();
          if (next !== undefined) deltas.push(piece(index, next), ...(turn === 3 ? [{ content: '.' }] : []));
        }
        for (const [index, rest] of left.entries()) deltas.push(...rest.map((next) => piece(index, next)));
        const tools = write(deltas).filter(({ type }) => type === 'tool_use');
        expect(tools.map(({ text }) => text)).toEqual(texts);
      }),
    );
  });
});

test.each(['text', 'tool'])('a long %s takes linear time in small pieces', (kind) => {
  const act = (text: string): void => {
    const writer = createMessageWriter({ id: 'msg', model: 'm' }, () => 1);
    const pieces = text.match(/[\s\S]{1,3}/gu) ?? [];
    const deltas = pieces.map((piece): JsonObject => {
      if (kind === 'text') return { content: piece };
      return { tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: piece } }] };
    });
    expect(deltas.flatMap(writer.part).length).toBe(pieces.length + 1);
  };
  const make = (length: number): string => '漢é😀 }x'.repeat(length / 7);
  expect(measureExcessMs(act, make, { length: 200_000, limitMs: 3_000 })).toBe(0);
});
