/**
 * Which decisions a review takes. Of a ladder: run a proposed or an edited input, give advice, try again, reject;
 * `output` and `skip` only if the step allows them. What is wrong with the job is not for a review of money, and what
 * is wrong with money not for a review of a job.
 */
import type { ReviewAction } from '../../contracts/review.ts';
import type { ReviewRow } from '../../db/review/review.ts';

const skillActions: readonly ReviewAction[] = ['keep', 'edit', 'narrow', 'merge', 'retire'];

type Subject = Pick<ReviewRow, 'kind' | 'run_id' | 'subject' | 'payload'>;

/** Of a budget that many steps may wait for, some of which may be skipped, or of one ladder. */
function ofBudget({ subject, payload }: Subject): readonly ReviewAction[] {
  return subject !== null || payload.optional === true ? ['raise', 'skip', 'cancel'] : ['raise', 'cancel'];
}

function ofLadder({ run_id, payload }: Subject): readonly ReviewAction[] {
  const isStep = run_id !== null;
  const hasProposals = (payload.proposals ?? []).length > 0;
  const possible: readonly (ReviewAction | false)[] = [
    hasProposals && 'approve',
    isStep && 'edit',
    'advise',
    'retry',
    payload.allow_output === true && 'output',
    payload.optional === true && 'skip',
    'reject',
  ];
  return possible.filter((action) => action !== false);
}

/** Of a step that is a question itself: its answer, or none. */
function ofQuestion({ payload }: Subject): readonly ReviewAction[] {
  return payload.optional === true ? ['output', 'skip', 'reject'] : ['output', 'reject'];
}

/** In the order in which they are offered. */
export function actionsOf(subject: Subject): readonly ReviewAction[] {
  switch (subject.kind) {
    case 'escalation':
    case 'ops':
      return ofLadder(subject);
    case 'step':
      return ofQuestion(subject);
    case 'budget':
      return ofBudget(subject);
    case 'skill':
      return skillActions;
  }
}
