import { expect, it } from 'vitest';
import { decidedInput } from '../src/review-actions.ts';

const proposals = ['first', 'second'].map((name) => ({ input: { name }, patch: [], source: 'repair' }));

it.each([
  ['an edited input', { action: 'edit', input: { name: 'own' } }, { name: 'own' }],
  ['the proposal that is named', { action: 'approve', proposal: 1 }, { name: 'second' }],
  ['the first proposal when none is named', { action: 'approve' }, { name: 'first' }],
  ['nothing for a proposal that is not there', { action: 'approve', proposal: 2 }, undefined],
  ['nothing with another decision', { action: 'retry', input: { name: 'own' } }, undefined],
] as const)('a decision brings %s', (_, decision, expected) => {
  expect(decidedInput({ proposals }, decision)).toEqual(expected);
});
