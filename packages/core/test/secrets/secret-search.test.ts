import { describe, expect, it } from 'vitest';
import { finish } from '../../src/pieces.ts';
import { pieceLength, SecretSearch } from '../../src/secrets/secret-search.ts';

function searchFor(forms: readonly string[]): SecretSearch {
  return finish(SecretSearch.build(forms));
}

const lengthOf = (forms: readonly string[]): number => forms.reduce((sum, { length }) => sum + length, 0);

describe('the work of a search', () => {
  const numbered = (count: number, to: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => to(at));
  const kinds: readonly (readonly [string, readonly string[], string])[] = [
    ['one text', ['secret-value'], 'secret-valu'.repeat(20_000)],
    [
      'six thousand that begin alike',
      numbered(6_400, (at) => `lkkkkkkkkkkk-${at}`),
      'lkkkkkk '.repeat(30_000),
    ],
    ['each the beginning of the next', numbered(400, (at) => 'a'.repeat(at + 8)), 'a'.repeat(200_000)],
    ['each the end of the next', numbered(400, (at) => `${'b'.repeat(at + 8)}c`), 'b'.repeat(200_000)],
    ['a period that never ends', [`${'ab'.repeat(5_000)}c`], 'ab'.repeat(100_000)],
    [
      'a thousand first letters',
      numbered(1_000, (at) => `${String.fromCharCode(400 + at)}1234567`),
      'Ɛ12Ƒ'.repeat(50_000),
    ],
  ];

  it.each(kinds)(
    'grows with the text and the searched texts, not with their product: %s',
    (_, forms, text) => {
      const search = searchFor(forms);
      expect(search.steps).toBeLessThanOrEqual(2 * lengthOf(forms));
      search.steps = 0;
      finish(search.find(text));
      expect(search.steps).toBeLessThanOrEqual(2 * text.length);
    },
  );

  it('is done in pieces', () => {
    const forms = numbered(40, (at) => `${at}-`.padEnd(6_000, 'abcdef'));
    let pieces = 0;
    const build = SecretSearch.build(forms);
    let step = build.next();
    for (; step.done !== true; step = build.next()) pieces += 1;
    expect(pieces).toBeGreaterThanOrEqual((2 * lengthOf(forms)) / pieceLength - 2);
    const find = step.value.find('x'.repeat(10 * pieceLength));
    for (pieces = 0; find.next().done !== true; pieces += 1);
    expect(pieces).toBe(9);
  });
});

describe('a search', () => {
  it('finds every occurrence, and those that overlap as one with the longest of them', () => {
    const forms = ['aaaaaaaa', 'baaaaaaaac', 'zzzzzzzz'];
    expect(finish(searchFor(forms).find('baaaaaaaacaa zzzzzzzzzzzz'))).toEqual([
      { start: 0, end: 10, form: 1 },
      { start: 13, end: 25, form: 2 },
    ]);
  });

  it('without values finds nothing', () => {
    expect(finish(searchFor([]).find('anything'))).toEqual([]);
  });
});
