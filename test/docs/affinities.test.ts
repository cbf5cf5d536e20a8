import { findAffinityFault } from '@capstan/core/residency/affinity-key';
import { expect, test } from 'vitest';
import { listDocuments, readDocument } from './documents.ts';

/** Each `affinity` with an expression that a page gives: as a field of a file or request, in a row or in a sentence. */
function listAffinities(file: string): string[] {
  const found: string[] = [];
  let isColumn = false;
  for (const line of readDocument(file).split('\n')) {
    const isRow = line.startsWith('|');
    isColumn = isRow && (isColumn || /\| `affinity` \|/.test(line));
    if (!isColumn && !line.includes('affinity')) continue;
    const spans = [...line.matchAll(/`([^`]*)`/g)].map(([, span = '']) => span);
    for (const text of spans.length === 0 ? [line] : spans) {
      const [, given = text] = /"?affinity"?: *(["'].*["'])/.exec(text) ?? [];
      if (given.includes('{{')) found.push(given.replace(/^["'](.*)["']$/, '$1').replaceAll('\\|', '|'));
    }
  }
  return found;
}

const shown = listDocuments().flatMap((file) => listAffinities(file).map((text) => [file, text] as const));

test('the guide of capabilities and others show affinities', () => {
  expect(shown.length).toBeGreaterThanOrEqual(7);
});

test.each(shown)('%s shows an affinity that a registration may have: %s', (_, text) => {
  expect(findAffinityFault(text)).toBeNull();
});
