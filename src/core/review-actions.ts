/**
 * Which decisions a review takes. A ladder's takes: run a proposed or an edited input, give advice, try again,
 * reject; `output` and `skip` only if the step allows them. What is wrong with the job is not for a review of
 * money, and what is wrong with money not for a review of a job.
 */
import type { Json } from '../contracts/primitives.ts';
import type { ReviewAction, ReviewDecision, ReviewKind, ReviewPayload } from '../contracts/review.ts';

const skillActions: readonly ReviewAction[] = ['keep', 'edit', 'narrow', 'merge', 'retire'];

/** What a review is about. */
export interface ReviewMatter {
  readonly kind: ReviewKind;
  /** Null: of no step. */
  readonly run_id: string | null;
  /** The budget that has no room; null when it is about something else. */
  readonly subject: string | null;
  /** Null: of no ladder. */
  readonly escalation_id: string | null;
  readonly payload: Pick<ReviewPayload, 'proposals' | 'allow_output' | 'optional'>;
}

/** Many steps may wait for a budget, some of which may be skipped, or one ladder does. */
function actionsOnBudget({ subject, escalation_id, payload }: ReviewMatter): readonly ReviewAction[] {
  const isOfMany = subject !== null && escalation_id === null;
  return isOfMany || payload.optional === true ? ['raise', 'skip', 'cancel'] : ['raise', 'cancel'];
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

/** A step that is a question itself takes its answer, or none. */
function actionsOnQuestion({ payload }: ReviewMatter): readonly ReviewAction[] {
  return payload.optional === true ? ['output', 'skip', 'reject'] : ['output', 'reject'];
}

/** In the order in which they are offered. */
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

/** The input that a decision brings; undefined for one that brings none. */
export function decidedInput(
  { proposals }: Pick<ReviewPayload, 'proposals'>,
  { action, input, proposal = 0 }: Pick<ReviewDecision, 'action' | 'input' | 'proposal'>,
): Json | undefined {
  if (action === 'edit') return input;
  return action === 'approve' ? proposals?.[proposal]?.input : undefined;
}
