import { expect, test } from 'vitest';
import { measureExcessMs } from '../../../test/support/linear-time.ts';
import { createToolCalls } from '../src/models/tool-calls.ts';

function grow(text: string, size: number): string {
  let told = '';
  const calls = createToolCalls((delta) => {
    const [{ function: called }] = delta.tool_calls as [{ function: { arguments: string } }];
    told += called.arguments;
  });
  calls.take({ index: 0, id: 'a', name: 'write', written: '' });
  for (const written of text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'gu')) ?? [])
    calls.take({ index: 0, id: '', name: '', written });
  const [call] = calls.end();
  expect(call?.function.arguments === told).toBe(true);
  return told;
}

test.each([
  ['a long text', (length: number) => JSON.stringify({ text: '漢é😀 x'.repeat(length / 6) })],
  [
    'many objects',
    (length: number) => JSON.stringify({ list: Array.from({ length: length / 8 }, () => ({ a: {} })) }),
  ],
])('arguments that are %s take linear time in small pieces', (_, make) => {
  expect(grow(make(1_000), 3)).toBe(make(1_000));
  const act = (text: string) => void grow(text, 3);
  expect(measureExcessMs(act, make, { length: 400_000, limitMs: 3_000 })).toBe(0);
});
