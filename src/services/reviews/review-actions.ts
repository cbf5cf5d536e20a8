/**
 * Which decisions a review takes. Of a ladder: run a proposed or an edited input, give advice, try again, reject;
 * `output` and `skip` only if the step allows them. What is wrong with the job is not for a review of money, and what
 * is wrong with money not for a review of a job.
 */
import type { ReviewAction } from '../../contracts/review.ts';
import type { ReviewRow } from '../../db/review.ts';

const skillActions: readonly ReviewAction[] = ['keep', 'edit', 'narrow', 'merge', 'retire'];

type Subject = Pick<ReviewRow, 'kind' | 'run_id' | 'payload'>;

const ofLadder = ({ run_id, payload }: Subject): readonly ReviewAction[] => {
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
};

/** In the order in which they are offered. */
export const actionsOf = (subject: Subject): readonly ReviewAction[] => {
  switch (subject.kind) {
    case 'escalation':
    case 'step':
    case 'ops':
      return ofLadder(subject);
    case 'budget':
      return subject.payload.optional === true ? ['raise', 'skip', 'cancel'] : ['raise', 'cancel'];
    case 'skill':
      return skillActions;
  }
};
