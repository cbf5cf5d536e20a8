/** One review: what can be answered, and what the answer says. */
import type { Json } from '../../../../src/contracts/primitives.ts';
import type { Review, ReviewAction, ReviewDecision } from '../../../../src/contracts/review.ts';

export interface DecisionDraft {
  readonly action: ReviewAction;
  readonly proposal: number;
  /** The corrected input, or the output, as it is written. */
  readonly value: Json;
  readonly text: string;
  readonly usd: string;
  readonly note: string;
  readonly remember: boolean;
}

const preferred: readonly ReviewAction[] = ['approve', 'edit', 'output', 'raise', 'keep', 'retry'];

function inputOf({ payload }: Review): Json {
  return payload.proposals?.[0]?.input ?? payload.input ?? {};
}

export function beginDraft(review: Review): DecisionDraft {
  const { actions, payload } = review;
  const hasProposal = (payload.proposals?.length ?? 0) > 0;
  const first = preferred.find((action) => actions.includes(action) && (action !== 'approve' || hasProposal));
  return {
    action: first ?? actions[0] ?? 'reject',
    proposal: 0,
    value: inputOf(review),
    text: '',
    usd: '',
    note: '',
    remember: true,
  };
}

/** Actions in the order in which they are offered; approving needs a proposal. */
export function offeredActions({ actions, payload }: Review): readonly ReviewAction[] {
  const hasProposal = (payload.proposals?.length ?? 0) > 0;
  return actions.filter((action) => action !== 'approve' || hasProposal);
}

export function toDecision(draft: DecisionDraft, review: Review): ReviewDecision {
  const { action, value, text, usd, note, remember, proposal } = draft;
  const common = { action, ...(note.trim() === '' ? {} : { note: note.trim() }) };
  const canRemember = review.kind === 'escalation';
  switch (action) {
    case 'approve':
      return {
        ...common,
        ...(review.payload.proposals === undefined ? {} : { proposal }),
        ...(canRemember ? { remember } : {}),
      };
    case 'edit':
      return review.kind === 'skill'
        ? { ...common, skill: { instructions: text } }
        : { ...common, input: value, ...(canRemember ? { remember } : {}) };
    case 'narrow':
      return {
        ...common,
        skill: { pattern: { error_patterns: text.split('\n').filter((line) => line.trim() !== '') } },
      };
    case 'advise':
      return { ...common, instructions: text };
    case 'output':
      return { ...common, output: value };
    case 'raise':
      return { ...common, budget_ceiling_usd: Number(usd) };
    case 'merge':
      return { ...common, into: text.trim() };
    default:
      return common;
  }
}

/** Why the draft cannot be sent yet; null when it can. */
export function whatIsMissing({ action, text, usd }: DecisionDraft): string | null {
  if (action === 'advise' && text.trim() === '') return 'Write what should be done.';
  if (action === 'raise' && !(Number(usd) > 0)) return 'Give the new ceiling in USD.';
  if (action === 'merge' && text.trim() === '') return 'Give the id of the skill that stays.';
  return action === 'narrow' && text.trim() === ''
    ? 'Give the errors that it is for, one pattern a line.'
    : null;
}
