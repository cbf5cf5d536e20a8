/** How a ladder that stopped tells its step, its run and a person why. */
import type { Failure } from '../../contracts/primitives.ts';
import type { ReviewKind } from '../../contracts/review.ts';
import { exhaustedText } from './labels.ts';
import type { StopReason } from './types.ts';

const why: Record<Exclude<StopReason, 'cancelled'>, string> = {
  exhausted: 'no level is left to try',
  no_advisor: 'no model is there to ask',
  advisor_says_human: 'the advisor asks for a person',
  gave_up: 'the last executor gave up',
  ops: 'a call failed in a way that only its operator can change',
  budget: 'the money for model calls is used up',
  time: 'the time for automated work is over',
};

export function reviewKindOf(reason: StopReason): ReviewKind {
  return reason === 'ops' || reason === 'budget' ? reason : 'escalation';
}

/** One sentence for a person. */
export function explainStop(reason: Exclude<StopReason, 'cancelled'>, jobType: string): string {
  return `the escalation of ${jobType} needs a person: ${why[reason]}`;
}

/** The specification's text, and what was seen last. */
export function stopFailure(reason: StopReason, error: string | null): Failure {
  if (reason === 'cancelled')
    return { code: 'escalation_cancelled', message: 'the escalation was cancelled' };
  const last = error === null ? '' : `; last error: ${error}`;
  return {
    code: reason === 'time' ? 'escalation_timeout' : 'ladder_exhausted',
    message: `${exhaustedText}: ${why[reason]}${last}`,
    details: { reason },
  };
}

function noted(text: string, note: string | undefined): string {
  return note === undefined ? text : `${text}: ${note}`;
}

export function rejectedByPerson(note: string | undefined): Failure {
  return { code: 'review_rejected', message: noted('a person rejected it in a review', note) };
}

export function cancelledByPerson(note: string | undefined): Failure {
  return { code: 'escalation_cancelled', message: noted('a person cancelled the escalation', note) };
}

/** The failure of a ladder whose review expired. @param error that it asked with */
export function undecidedFailure(error: Failure | null): Failure {
  const { message } = error ?? stopFailure('exhausted', null);
  return { code: 'ladder_exhausted', message: `${message}; nobody decided in time` };
}
