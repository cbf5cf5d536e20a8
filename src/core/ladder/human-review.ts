/**
 * What follows from a ladder that stopped: the question to a person, the same one again, or its end; and how it
 * tells its step, its run and a person why.
 */
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { ReviewDecision, ReviewKind } from '../../contracts/review.ts';
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

/** What a decision makes of a step that is a question. */
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

/** The failure of a ladder whose review expired. @param error that it asked with */
export function undecidedFailure(error: Failure | null): Failure {
  const { message } = error ?? stopFailure('exhausted', null);
  return { code: 'ladder_exhausted', message: `${message}; nobody decided in time` };
}

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

export interface DecisionContext {
  readonly review_id: string;
  readonly round: number;
  /** The input that the decision brings; undefined for one that brings none. */
  readonly input: Json | undefined;
  /** The level that was tried last. */
  readonly level: number;
  /** Reads the step's input that failed last; null for a job by itself. */
  readonly readCurrent: (() => Promise<Json>) | null;
}

export type DecisionOutcome =
  /** `raiseUsd`: with a new limit for its model calls. */
  | { readonly kind: 'goes_on'; readonly next: Ladder; readonly raiseUsd?: number | undefined }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'answered'; readonly output: Json }
  | { readonly kind: 'failed'; readonly error: Failure };

/**
 * What a person's decision makes of a ladder. An input is executed by the next transition; advice is one more entry of
 * the list; the rest ends the ladder.
 */
export async function followDecision(
  ladder: Ladder,
  decision: ReviewDecision,
  context: DecisionContext,
): Promise<DecisionOutcome> {
  switch (decision.action) {
    case 'approve':
    case 'edit':
      return runInput(ladder, context, {
        input: context.input ?? null,
        remember: decision.remember ?? true,
      });
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

/** The step's last input once more; of a job, or with more money, the level that was tried last. */
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
