import { expect, it } from 'vitest';
import type { ReviewDecision } from '../../src/contracts/review.ts';
import { type DecisionContext, followDecision } from '../../src/ladder/human-review.ts';
import { aFailedStep } from './fake-ports.ts';

const ofStep: DecisionContext = {
  review_id: 'rev_1',
  round: 2,
  input: { rate: 9_000 },
  level: 5,
  readCurrent: async () => ({ rate: 44_101 }),
};
const ofJob: DecisionContext = { ...ofStep, input: undefined, readCurrent: null };

const decided = { review_id: 'rev_1', round: 2 };

it.each<[ReviewDecision, DecisionContext, object]>([
  [{ action: 'edit' }, ofStep, { next: { decided: { ...decided, input: { rate: 9_000 }, remember: true } } }],
  [
    { action: 'approve', remember: false },
    ofStep,
    { next: { decided: { ...decided, input: { rate: 9_000 }, remember: false } } },
  ],
  [
    { action: 'retry' },
    ofStep,
    { next: { decided: { ...decided, input: { rate: 44_101 }, remember: false } } },
  ],
  [{ action: 'retry' }, ofJob, { next: { decided: null, command: { type: 'execute', level: 4 } } }],
  [
    { action: 'raise', budget_ceiling_usd: 2 },
    ofStep,
    { raiseUsd: 2, next: { decided: null, command: { type: 'execute', level: 4 } } },
  ],
  [
    { action: 'advise', instructions: 'round it', level: 2 },
    ofStep,
    {
      next: {
        advice: [{ from_level: 5, instructions: 'round it', suggested_executor_level: 2 }],
        command: { type: 'execute', level: 2 },
      },
    },
  ],
  [
    { action: 'advise' },
    ofStep,
    {
      next: {
        advice: [{ from_level: 5, instructions: '', suggested_executor_level: 1 }],
        command: { type: 'execute', level: 1 },
      },
    },
  ],
])('%j continues the ladder', async (decision, context, outcome) => {
  expect(await followDecision(aFailedStep(), decision, context)).toMatchObject({
    kind: 'goes_on',
    ...outcome,
  });
});

it.each<[ReviewDecision, object]>([
  [
    { action: 'output', output: { rate: 1 } },
    { kind: 'answered', output: { rate: 1 } },
  ],
  [{ action: 'skip' }, { kind: 'skipped' }],
  [
    { action: 'reject', note: 'no' },
    { kind: 'failed', error: { code: 'review_rejected', message: 'a person rejected it in a review: no' } },
  ],
  ...(['keep', 'narrow', 'merge', 'retire'] as const).map((action): [ReviewDecision, object] => [
    { action },
    { kind: 'failed', error: { code: 'review_rejected', message: 'a person rejected it in a review' } },
  ]),
  [
    { action: 'cancel' },
    { kind: 'failed', error: { code: 'escalation_cancelled', message: 'a person cancelled the escalation' } },
  ],
])('%j stops the ladder', async (decision, outcome) => {
  expect(await followDecision(aFailedStep(), decision, ofStep)).toEqual(outcome);
});
