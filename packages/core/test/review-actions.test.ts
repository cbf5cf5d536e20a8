import { expect, it } from 'vitest';
import { actionsOf, decidedInput } from '../src/review-actions.ts';

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

it.each([
  ['of a ladder of a step', { escalation_id: 'e' }, ['raise', 'edit', 'cancel']],
  [
    'with a proposal',
    { escalation_id: 'e', payload: { proposals: [{}] } },
    ['raise', 'approve', 'edit', 'cancel'],
  ],
  [
    'of an optional step',
    { escalation_id: 'e', payload: { optional: true } },
    ['raise', 'edit', 'skip', 'cancel'],
  ],
  ['of a job', { escalation_id: 'e', run_id: null, subject: null }, ['raise', 'cancel']],
  ['of many steps', { payload: { proposals: [{}] } }, ['raise', 'skip', 'cancel']],
] as const)('a review about money %s takes a decision without models too', (_, matter, actions) => {
  const ofRun = { kind: 'budget', run_id: 'r', subject: 'run:r', escalation_id: null, payload: {} } as const;
  expect(actionsOf({ ...ofRun, ...matter } as never)).toEqual(actions);
});
