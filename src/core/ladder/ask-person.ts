/** What follows from a ladder that stopped: the question to a person, the same one again, or its end. */
import type { Failure } from '../../contracts/primitives.ts';
import type { ReviewKind } from '../../contracts/review.ts';
import type { Ladder } from './ladder.ts';
import { mayAskAgain } from './limits.ts';
import { explainStop, reviewKindOf, stopFailure } from './stop-reason.ts';
import type { StopReason } from './types.ts';

/** The review that the ladder asked last. */
export interface AskedReview {
  readonly kind: ReviewKind;
  /** 1 = asked for the first time. */
  readonly round: number;
  /** Somebody has decided it. */
  readonly isResolved: boolean;
}

export interface StoppedLadder {
  readonly reason: StopReason;
  /** What the last call said. */
  readonly error: string | null;
  readonly policy: Ladder['policy'];
  readonly jobType: string;
}

export type StopConsequence =
  | { readonly kind: 'end'; readonly state: 'failed' | 'cancelled'; readonly error: Failure }
  /** `reason`: one sentence for a person. */
  | { readonly kind: 'ask'; readonly review: ReviewKind; readonly reason: string; readonly error: Failure }
  /** The review of that round is asked once more, because its decision did not help. */
  | { readonly kind: 'ask_again'; readonly round: number; readonly reason: string; readonly error: Failure };

/** Whether a ladder that stopped may ask: its job still wants an answer, and its pipeline does not want to fail. */
export function mayAsk({ reason, policy }: Pick<StoppedLadder, 'reason' | 'policy'>): boolean {
  return reason !== 'cancelled' && policy?.on_exhausted !== 'fail';
}

/** @param last null when nobody was asked yet */
export function followStop(stopped: StoppedLadder, last: AskedReview | null): StopConsequence {
  const { reason, jobType } = stopped;
  const error = stopFailure(reason, stopped.error);
  if (reason === 'cancelled') return { kind: 'end', state: 'cancelled', error };
  if (!mayAsk(stopped)) {
    const message = `${error.message}; on_exhausted is fail, so that nobody is asked`;
    return { kind: 'end', state: 'failed', error: { ...error, message } };
  }
  const review = reviewKindOf(reason);
  const text = explainStop(reason, jobType);
  if (last === null || !last.isResolved || last.kind !== review) {
    return { kind: 'ask', review, reason: text, error };
  }
  if (!mayAskAgain(last.round)) return { kind: 'end', state: 'failed', error };
  return { kind: 'ask_again', round: last.round, reason: `${text}; the last decision did not help`, error };
}
