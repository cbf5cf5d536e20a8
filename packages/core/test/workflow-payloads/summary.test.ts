import { expect, test } from 'vitest';
import { nameUnit, summarizeBatch, summarizeUnit, toSummary } from '../../src/workflow-names.ts';

test.each(['p 1.0', `p ${'x'.repeat(198)}`])('%s is left as it is', (text) => {
  expect(toSummary(text)).toBe(text);
});

test.each(['x', 'ü', '漢', '😀'])(
  '128 of %s and a long name are cut to 200 bytes, between characters',
  (character) => {
    const summary = toSummary(`${'p'.repeat(64)} ${character.repeat(300)}`);
    expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(200);
    expect(Buffer.byteLength(summary)).toBeGreaterThan(190);
    expect(summary).toMatch(new RegExp(`^p{64} (?:${character})+…$`, 'u'));
  },
);

test('characters that JSON escapes are counted as it writes them', () => {
  for (const character of ['"', '\\', '\u0001', '\ud800']) {
    const summary = toSummary(character.repeat(128));
    expect(JSON.stringify(summary).length).toBeLessThanOrEqual(202);
  }
});

function unit(id: string, item = 0, capability = 'echo') {
  const step = { id, capability, dependencies: [], total_timeout_ms: 1_000 };
  return { step, index: 0, item };
}

test('a unit is named by its step and item, and by what it calls', () => {
  expect([nameUnit('cut'), nameUnit('cut', 3)]).toEqual(['cut', 'cut [3]']);
  expect(summarizeUnit(unit('cut', 2, 'video.cut'))).toBe('cut [2] → video.cut');
});

test('a batch names all its units, those that follow after those that begin', () => {
  expect(summarizeBatch([unit('a')], [])).toBe('a → echo');
  expect(summarizeBatch([unit('a')], [unit('b'), unit('c')])).toBe('3 short steps: a, then b, c');
  expect(summarizeBatch([unit('many', 1), unit('many', 2)], [])).toBe('2 short steps: many [1], many [2]');
  const chain = Array.from({ length: 40 }, (_, at) => unit(`step${at}`));
  const long = summarizeBatch(chain.slice(0, 1), chain.slice(1));
  expect(long).toMatch(/^40 short steps: step0, then step1, step2,.*…$/);
});
