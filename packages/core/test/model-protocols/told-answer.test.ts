import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ModelResult } from '../../src/contracts/openai.ts';
import { readDelta } from '../../src/model-protocols/model-answer.ts';
import { createToldAnswer } from '../../src/model-protocols/told-answer.ts';

function callOf(name: string, written: string) {
  return { id: `call_${name}`, type: 'function' as const, function: { name, arguments: written } };
}

function missing(result: ModelResult, ...deltas: object[]) {
  const told = createToldAnswer();
  for (const delta of deltas) told.note(delta as never);
  return told.missing(result);
}

describe('the missing parts of a stream', () => {
  test.each<[name: string, ModelResult, object[], rest: unknown]>([
    ['no part is missing', { text: 'Hello' }, [{ content: 'Hel' }, { content: 'lo' }], []],
    ['the end of a text', { text: 'Hello' }, [{ content: 'Hel' }], [{ index: 0, content: 'lo' }]],
    ['spaces at the end', { text: 'Hello' }, [{ content: 'Hello \n' }], []],
    ['another text', { text: 'Hello' }, [{ content: 'Help' }], null],
    ['a text with a hole', { text: 'Hello' }, [{ content: 'Heo' }], null],
    ['an empty answer', { text: '' }, [], []],
    ['JSON in a fence', { json: { a: 1 } }, [{ content: '```json\n{"a":1}\n```' }], []],
    ['JSON without a part', { json: { a: 1 } }, [{ reasoning: 'hm' }], [{ index: 0, content: '{"a":1}' }]],
    [
      'a call',
      { tool_calls: [callOf('f', '{}')] },
      [],
      [{ index: 0, tool_calls: [{ index: 0, ...callOf('f', '{}') }] }],
    ],
    [
      'the arguments of a call',
      { text: 'x', tool_calls: [callOf('f', '{}'), callOf('g', '{"a":1}')] },
      [
        {
          content: 'x',
          tool_calls: [
            { index: 0, ...callOf('f', '{}') },
            { index: 1, ...callOf('g', '') },
          ],
        },
      ],
      [{ index: 0, tool_calls: [{ index: 1, function: { arguments: '{"a":1}' } }] }],
    ],
    [
      'other arguments',
      { tool_calls: [callOf('f', '{"a":1}')] },
      [{ tool_calls: [{ index: 0, ...callOf('f', '{"a":2') }] }],
      null,
    ],
    [
      'a call too many',
      { text: 'x' },
      [{ content: 'x' }, { tool_calls: [{ index: 0, ...callOf('f', '{}') }] }],
      null,
    ],
    [
      'the second of two answers',
      { choices: [{ text: 'a' }, { text: 'b' }] },
      [{ index: 0, content: 'a' }],
      [{ index: 1, content: 'b' }],
    ],
  ])('%s', (_, result, deltas, rest) => {
    expect(missing(result, ...deltas)).toEqual(rest);
  });

  test('is the rest of any answer, wherever its parts are cut and from wherever they are lost', () => {
    const text = fc.string({ maxLength: 40, unit: 'grapheme' });
    const cuts = fc.array(fc.nat(60), { maxLength: 8 });
    fc.assert(
      fc.property(text, fc.array(text, { maxLength: 3 }), cuts, fc.nat(20), (content, calls, at, kept) => {
        const result = { text: content, tool_calls: calls.map((written, n) => callOf(`f${n}`, written)) };
        const whole = [
          ...cut(content, at).map((piece) => ({ content: piece })),
          ...result.tool_calls.flatMap((call, index) => [
            { tool_calls: [{ index, ...callOf(call.function.name, '') }] },
            ...cut(call.function.arguments, at).map((piece) => ({
              tool_calls: [{ index, function: { arguments: piece } }],
            })),
          ]),
        ];
        const told = whole.slice(0, kept);
        const rest = missing(result, ...told) ?? [];
        expect(join([...told, ...rest])).toEqual({ content, calls });
      }),
    );
  });
});

function cut(text: string, at: readonly number[]): string[] {
  const places = [...new Set([0, ...at.map((one) => Math.min(one, text.length)), text.length])].toSorted(
    (a, b) => a - b,
  );
  return places.slice(1).map((end, n) => text.slice(places[n], end));
}

function join(deltas: readonly object[]) {
  const calls: string[] = [];
  let content = '';
  for (const delta of deltas) {
    const read = readDelta(delta as never);
    content += read.content ?? '';
    for (const { index, function: called } of read.toolCalls) {
      const { arguments: written = '' } = called as { arguments?: string };
      calls[Number(index)] = (calls[Number(index)] ?? '') + written;
    }
  }
  return { content, calls };
}
