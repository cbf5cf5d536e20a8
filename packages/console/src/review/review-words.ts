/** The words of reviews: the question, and the effect of each answer. */
import type { Review, ReviewAction, ReviewKind } from '@capstan/core/contracts/review';

export const kindWords: Readonly<Record<ReviewKind, string>> = {
  escalation: 'Rejected input',
  skill: 'Skill below its confidence',
  budget: 'Budget',
  ops: 'Operations',
  step: 'Question',
};

export const kindShort: Readonly<Record<ReviewKind, string>> = {
  escalation: 'Rejected input',
  skill: 'Skill',
  budget: 'Budget',
  ops: 'Operations',
  step: 'Question',
};

export const actionWords: Readonly<Record<ReviewAction, string>> = {
  approve: 'Approve',
  edit: 'Use my input',
  advise: 'Retry with advice',
  retry: 'Retry unchanged',
  output: 'Submit answer',
  skip: 'Skip the step',
  reject: 'Reject',
  raise: 'Raise the budget',
  cancel: 'Cancel the run',
  keep: 'Keep the skill',
  narrow: 'Narrow the skill',
  merge: 'Merge into another',
  retire: 'Retire the skill',
};

export const effectWords: Readonly<Record<ReviewAction, string>> = {
  approve: 'The step runs with the proposed input.',
  edit: 'The step runs with your input. The schema checks it first.',
  advise: 'A model tries again with your words.',
  retry: 'The step runs again with the same input.',
  output: 'The step succeeds with your answer. Nothing runs.',
  skip: 'The step is skipped, and so are steps that depend on it unless their run_if says otherwise.',
  reject: 'The step fails, and the run with it unless it tolerates that.',
  raise: 'Waiting steps continue under the new budget.',
  cancel: 'The run is cancelled.',
  keep: 'The skill stays as it is.',
  narrow: 'The skill is used for fewer errors.',
  merge: 'The other skill takes its place.',
  retire: 'The skill is not used any more.',
};

const mostTitle = 160;

function shorten(text: string): string {
  const [line = ''] = text.split('\n');
  return line.length <= mostTitle ? line : `${line.slice(0, mostTitle - 1)}…`;
}

export interface TitledReview extends Pick<Review, 'reason' | 'kind'> {
  readonly payload: Pick<Review['payload'], 'job_type' | 'error' | 'validation_errors'>;
}

/** The cause of a failed step, by which reviews differ, else the question. */
export function titleOf({ kind, reason, payload }: TitledReview): string {
  const { job_type, error = '', validation_errors = [] } = payload;
  if (job_type === undefined || (kind !== 'escalation' && kind !== 'ops')) return reason;
  const [fault] = validation_errors;
  if (fault !== undefined) {
    const more = validation_errors.length === 1 ? '' : `, and ${validation_errors.length - 1} more`;
    return shorten(`${job_type} refused its input: ${`${fault.pointer} ${fault.message}`.trim()}${more}`);
  }
  return error === '' ? reason : shorten(`${job_type} failed: ${error}`);
}
