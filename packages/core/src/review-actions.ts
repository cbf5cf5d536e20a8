/**
 * The decisions that a review accepts. A ladder's review accepts: run a proposed or an edited input, give advice,
 * retry, reject; and `output` and `skip` only if the step allows them. Where the money for models is used up, the step of
 * the ladder accepts an input too, which needs no model. A review of a job accepts no decision about the budget.
 */
import type { Json } from './contracts/primitives.ts';
import type { ReviewAction, ReviewDecision, ReviewKind, ReviewPayload } from './contracts/review.ts';

const skillActions: readonly ReviewAction[] = ['keep', 'edit', 'narrow', 'merge', 'retire'];

/** The subject of a review. */
export interface ReviewMatter {
  readonly kind: ReviewKind;
  /** Null: it belongs to no step. */
  readonly run_id: string | null;
  /** The budget that has no room; null for another subject. */
  readonly subject: string | null;
  /** Null: it belongs to no ladder. */
  readonly escalation_id: string | null;
  readonly payload: Pick<ReviewPayload, 'proposals' | 'allow_output' | 'optional'>;
}

/** A budget review is either for many steps, some of which may be skipped, or for one ladder. */
function actionsOnBudget({ run_id, subject, escalation_id, payload }: ReviewMatter): readonly ReviewAction[] {
  const isOfMany = subject !== null && escalation_id === null;
  const isOfLadder = run_id !== null && escalation_id !== null;
  const hasProposals = (payload.proposals ?? []).length > 0;
  const possible: readonly (ReviewAction | false)[] = [
    'raise',
    isOfLadder && hasProposals && 'approve',
    isOfLadder && 'edit',
    (isOfMany || payload.optional === true) && 'skip',
    'cancel',
  ];
  return possible.filter((action) => action !== false);
}

function actionsOnLadder({ run_id, payload }: ReviewMatter): readonly ReviewAction[] {
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

/** The review of a review step accepts an answer, or a decision without one. */
function actionsOnQuestion({ payload }: ReviewMatter): readonly ReviewAction[] {
  return payload.optional === true ? ['output', 'skip', 'reject'] : ['output', 'reject'];
}

/** Actions in the order in which they are offered. */
export function actionsOf(matter: ReviewMatter): readonly ReviewAction[] {
  switch (matter.kind) {
    case 'escalation':
    case 'ops':
      return actionsOnLadder(matter);
    case 'step':
      return actionsOnQuestion(matter);
    case 'budget':
      return actionsOnBudget(matter);
    case 'skill':
      return skillActions;
  }
}

/** The decision's input; undefined for a decision without one. */
export function decidedInput(
  { proposals }: Pick<ReviewPayload, 'proposals'>,
  { action, input, proposal = 0 }: Pick<ReviewDecision, 'action' | 'input' | 'proposal'>,
): Json | undefined {
  if (action === 'edit') return input;
  return action === 'approve' ? proposals?.[proposal]?.input : undefined;
}
