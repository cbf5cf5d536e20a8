import { expect, test } from 'vitest';
import { readDocument } from './documents.ts';

const entries = [...readDocument('docs/glossary.md').matchAll(/^\| (.+?) \| (.+?) \| (.+?) \|$/gm)]
  .map(([, word = '', meaning = '', more = '']) => ({ word, meaning, more }))
  .filter(({ word }) => word !== 'word');

test('the glossary has at most forty words, each once and in alphabetical order', () => {
  const words = entries.map(({ word }) => word);
  expect(words.length).toBeGreaterThan(20);
  expect(words.length).toBeLessThanOrEqual(40);
  expect(words).toEqual([...new Set(words)].sort());
});

test('each word of the glossary leads to a page that explains more', () => {
  expect(entries.filter(({ more }) => !/^\[.+\]\(.+\)$/.test(more))).toEqual([]);
});

test.each(['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'])('%s leads to the glossary', (page) => {
  expect(readDocument(page)).toContain('(docs/glossary.md)');
});
