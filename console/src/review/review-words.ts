/** Reviews in words: what is asked, and what each answer does. */
import type { ReviewAction, ReviewKind } from '../../../src/contracts/review.ts';

export const kindWords: Readonly<Record<ReviewKind, string>> = {
  escalation: 'an input that nobody could correct',
  skill: 'a skill that lost its confidence',
  budget: 'money',
  ops: 'something only an operator can change',
  step: 'a question of a pipeline',
};

export const kindShort: Readonly<Record<ReviewKind, string>> = {
  escalation: 'correction',
  skill: 'skill',
  budget: 'money',
  ops: 'operations',
  step: 'question',
};

export const actionWords: Readonly<Record<ReviewAction, string>> = {
  approve: 'Approve',
  edit: 'Use what I wrote',
  advise: 'Advise and try again',
  retry: 'Try again as it is',
  output: 'Give the output',
  skip: 'Skip the step',
  reject: 'Reject',
  raise: 'Raise the ceiling',
  cancel: 'Cancel the run',
  keep: 'Keep the skill',
  narrow: 'Narrow the skill',
  merge: 'Merge into another',
  retire: 'Retire the skill',
};

export const effectWords: Readonly<Record<ReviewAction, string>> = {
  approve: 'The step is executed with the proposed input.',
  edit: 'The step is executed with the input as you wrote it; the schema checks it first.',
  advise: 'A model tries again with your words.',
  retry: 'The step is executed once more with the same input.',
  output: 'The step succeeds with what you give, and nothing is executed.',
  skip: 'The step is skipped; what depends on it is skipped too unless it says otherwise.',
  reject: 'The step fails, and the run with it unless it tolerates that.',
  raise: 'What waits for money goes on under the new ceiling.',
  cancel: 'The run is cancelled.',
  keep: 'The skill stays as it is.',
  narrow: 'The skill is used for fewer errors.',
  merge: 'The other skill takes its place.',
  retire: 'The skill is not used any more.',
};
