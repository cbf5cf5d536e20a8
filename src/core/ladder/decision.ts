/**
 * What a person's decision makes of a ladder. An input is executed by the next transition; advice is one more entry of
 * the list; the rest ends the ladder.
 */
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { ReviewDecision } from '../../contracts/review.ts';
import { topLevel } from './labels.ts';
import { adviseByPerson, type Ladder, restartLadder } from './ladder.ts';
import { cancelledByPerson, rejectedByPerson } from './stop-reason.ts';

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
