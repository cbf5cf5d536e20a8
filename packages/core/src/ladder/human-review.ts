/**
 * The consequence of a stopped ladder: a review, the same review again, or its end. Also explains the reason to its
 * step, its run and a person.
 */
import type { Failure, Json } from '../contracts/primitives.ts';
import type { ReviewDecision, ReviewKind } from '../contracts/review.ts';
import { adviseByPerson, type Ladder, restartLadder } from './ladder.ts';
import { exhaustedText, mayAskAgain, topLevel } from './levels.ts';
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
  return `${jobType} failed and needs a person: ${why[reason]}`;
}

/** The specification's text, and the last error. */
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

/** The end of a review step, by its decision. */
export function endOfQuestion({
  action,
  output = null,
  note,
}: Pick<ReviewDecision, 'action' | 'output' | 'note'>):
  | { readonly state: 'succeeded'; readonly output: Json }
  | { readonly state: 'skipped' }
  | { readonly state: 'failed'; readonly error: Failure } {
  if (action === 'output') return { state: 'succeeded', output };
  return action === 'skip' ? { state: 'skipped' } : { state: 'failed', error: rejectedByPerson(note) };
}

export function cancelledByPerson(note: string | undefined): Failure {
  return { code: 'escalation_cancelled', message: noted('a person cancelled the escalation', note) };
}

/** The failure of a ladder whose review expired. @param error that the review was opened with */
export function undecidedFailure(error: Failure | null): Failure {
  const { message } = error ?? stopFailure('exhausted', null);
  return { code: 'ladder_exhausted', message: `${message}; nobody decided in time` };
}

/** The last review of the ladder. */
export interface AskedReview {
  readonly kind: ReviewKind;
  /** 1 = the first time. */
  readonly round: number;
  /** A decision was made. */
  readonly isResolved: boolean;
}

export interface StoppedLadder {
  readonly reason: StopReason;
  /** The error of the last call. */
  readonly error: string | null;
  readonly policy: Ladder['policy'];
  readonly jobType: string;
}

export type StopConsequence =
  | { readonly kind: 'end'; readonly state: 'failed' | 'cancelled'; readonly error: Failure }
  /** `reason`: one sentence for a person. */
  | { readonly kind: 'ask'; readonly review: ReviewKind; readonly reason: string; readonly error: Failure }
  /** Opens the review of that round again, because its decision did not help. */
  | { readonly kind: 'ask_again'; readonly round: number; readonly reason: string; readonly error: Failure };

/** Whether a stopped ladder may open a review: its job is still open, and its pipeline does not prefer to fail. */
export function mayAsk({ reason, policy }: Pick<StoppedLadder, 'reason' | 'policy'>): boolean {
  return reason !== 'cancelled' && policy?.on_exhausted !== 'fail';
}

/** @param last null before the first review */
export function followStop(stopped: StoppedLadder, last: AskedReview | null): StopConsequence {
  const { reason, jobType } = stopped;
  const error = stopFailure(reason, stopped.error);
  if (reason === 'cancelled') return { kind: 'end', state: 'cancelled', error };
  if (!mayAsk(stopped)) {
    const cause = stopped.error === null ? '' : `${stopped.error}; `;
    const message = `${cause}${exhaustedText}, but on_exhausted is fail, so no review was opened: ${why[reason]}`;
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

export interface DecisionContext {
  readonly review_id: string;
  readonly round: number;
  /** The decision's input; undefined for a decision without one. */
  readonly input: Json | undefined;
  /** The level of the last attempt. */
  readonly level: number;
  /** Reads the step's input of the last failure; null for a job outside a step. */
  readonly readCurrent: (() => Promise<Json>) | null;
}

export type DecisionOutcome =
  /** `raiseUsd`: the new limit for its model calls. */
  | { readonly kind: 'goes_on'; readonly next: Ladder; readonly raiseUsd?: number | undefined }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'answered'; readonly output: Json }
  | { readonly kind: 'failed'; readonly error: Failure };

/**
 * The effect of a person's decision on a ladder. The next transition executes an input; advice is added to the list;
 * any other decision ends the ladder.
 */
export async function followDecision(
  ladder: Ladder,
  decision: ReviewDecision,
  context: DecisionContext,
): Promise<DecisionOutcome> {
  switch (decision.action) {
    case 'approve':
    case 'edit':
      return runInput(ladder, context, { input: context.input ?? null, remember: decision.remember ?? true });
    case 'retry':
    case 'raise':
      return retry(ladder, decision, context);
    case 'advise':
      return {
        kind: 'goes_on',
        next: adviseByPerson(ladder, decision.instructions ?? '', decision.level ?? 1),
      };
    case 'output':
      return { kind: 'answered', output: decision.output ?? null };
    case 'skip':
      return { kind: 'skipped' };
    case 'cancel':
      return { kind: 'failed', error: cancelledByPerson(decision.note) };
    case 'reject':
    case 'keep':
    case 'narrow':
    case 'merge':
    case 'retire':
      return { kind: 'failed', error: rejectedByPerson(decision.note) };
  }
}

function runInput(
  ladder: Ladder,
  { review_id, round }: DecisionContext,
  wanted: { readonly input: Json; readonly remember: boolean },
): DecisionOutcome {
  return { kind: 'goes_on', next: { ...ladder, decided: { review_id, round, ...wanted } } };
}

/** Retries the step's last input; for a job, or with a raised budget, the last level. */
async function retry(
  ladder: Ladder,
  { budget_ceiling_usd: raiseUsd }: ReviewDecision,
  context: DecisionContext,
): Promise<DecisionOutcome> {
  if (context.readCurrent !== null && raiseUsd === undefined) {
    return runInput(ladder, context, { input: await context.readCurrent(), remember: false });
  }
  const next = restartLadder(ladder, Math.min(context.level, topLevel));
  return { kind: 'goes_on', next, raiseUsd };
}
