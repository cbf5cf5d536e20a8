/**
 * The ceiling that lets waiting steps continue. A budget opens a review when the next call does not fit. The minimum is
 * the spent and reserved money plus that call; the sum for all remaining items, each at that call's price, avoids
 * further reviews.
 */
import type { BudgetRefusal } from '@capstan/core/contracts/money';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Review } from '@capstan/core/contracts/review';
import type { Run } from '@capstan/core/contracts/run';
import type { StepState } from '@capstan/core/contracts/run-step';
import { limitFor } from '@capstan/core/money/reservation';
import { endedStepStates } from '@capstan/core/run/ended-steps';

export interface CeilingAdvice {
  readonly leastUsd: number;
  /** For all remaining items. */
  readonly enoughUsd: number;
  readonly itemsLeft: number;
  /** The step that waits, in the run that waits: the ceiling may be that of a run above it. */
  readonly waiting: { readonly runId?: string | undefined; readonly stepId?: string | undefined };
}

type Refusal = BudgetRefusal & { readonly step_id?: string };

function isRefusal(details: JsonObject | undefined): details is JsonObject & Refusal {
  return typeof details?.minimum_usd === 'number';
}

/** Number of calls still to be paid: running ones have reserved their price already. */
function countLeft({ steps }: Pick<Run, 'steps'>, stepId: string | undefined): number {
  const { items } = steps.find(({ id }) => id === stepId) ?? {};
  if (items === undefined) return 1;
  const isLeft = (state: StepState): boolean => state !== 'running' && !endedStepStates.has(state);
  const counts = Object.entries(items) as [StepState, number][];
  const left = counts.map(([state, count]) => (isLeft(state) ? count : 0));
  return Math.max(
    1,
    left.reduce((sum, count) => sum + count, 0),
  );
}

/** @param run of the waiting step, once it is known; null for a review of something else, or without figures */
export function adviseCeiling(
  { payload: { details }, run_id }: Pick<Review, 'payload' | 'run_id'>,
  run: Run | undefined,
): CeilingAdvice | null {
  if (!isRefusal(details)) return null;
  const isOwn = details.scope === 'run' && run !== undefined && run.run_id === run_id;
  const figures = isOwn ? { ...details, spent_usd: run.cost_usd, reserved_usd: run.reserved_usd } : details;
  const itemsLeft = run === undefined ? 1 : countLeft(run, details.step_id);
  const leastUsd = limitFor(figures, 1);
  const enoughUsd = limitFor(figures, itemsLeft);
  if (leastUsd === null || enoughUsd === null) return null;
  return { leastUsd, enoughUsd, itemsLeft, waiting: { runId: details.run_id, stepId: details.step_id } };
}

/** Has every digit, unlike a displayed amount, because this one is typed. */
export function exactUsd(usd: number): string {
  return usd.toFixed(9).replace(/\.?0+$/, '');
}

/** The reason why the ceiling is probably a mistake; null when there is none. */
export function findCeilingFault(text: string, advice: CeilingAdvice | null): string | null {
  const usd = Number(text);
  if (text.trim() === '' || !(usd > 0)) return 'Give the new ceiling in USD.';
  if (advice === null || usd >= advice.leastUsd) return null;
  return `${exactUsd(usd)} USD is too low: the next call needs ${exactUsd(advice.leastUsd)} USD at least.`;
}
