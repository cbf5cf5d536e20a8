import { RE2JS } from 're2js';
import { expect, it } from 'vitest';
import { countProcessorMs } from '../../../../test/support/processor-time.ts';
import { estimatePatternSize } from '../../src/foreign-schema.ts';

it.each([
  '^a$',
  'a{1000}',
  '(a{30}){30}',
  '(?:[a-z\\]]{5,20}-?){2,}',
  '\\{3\\}(x|yy)*',
  '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$',
  '((a{9}b){9}c){9}',
])('is near what %s compiles to', (pattern) => {
  const size = RE2JS.compile(pattern).programSize();
  const estimate = estimatePatternSize(pattern);
  expect(estimate).toBeGreaterThan(size / 2);
  expect(estimate).toBeLessThan(size * 2 + 10);
});

it.each(['[[[[[', '(((((', '{{{{{', '\\\\\\', ')))))'])('reads %s in linear time', (piece) => {
  const spentMs = countProcessorMs();
  estimatePatternSize(piece.repeat(12_000));
  expect(spentMs()).toBeLessThan(3_000);
});
