import { expect, it } from 'vitest';
import { isCorrectable } from '../../src/ladder/classify-failure.ts';

it.each([
  ['input_rejected', true],
  ['input_invalid', true],
  ['output_invalid', true],
  ['output_too_large', false],
  ['contact_lost', false],
  ['', false],
])('another input may cure %j: %s', (code, isCured) => {
  expect(isCorrectable(code)).toBe(isCured);
});
