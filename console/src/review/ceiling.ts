/**
 * The ceiling that lets go on what waits for money. A budget asks when the next call does not fit: the least is what is
 * spent and held, and that call; with every item that is left, each at the price of that call, nobody is asked again.
 */
import type { BudgetRefusal } from '../../../src/contracts/money.ts';
import type { JsonObject } from '../../../src/contracts/primitives.ts';
import type { Review } from '../../../src/contracts/review.ts';
import type { Run, StepState } from '../../../src/contracts/run.ts';
import { limitFor } from '../../../src/core/money/reservation.ts';
import { endedStepStates } from '../../../src/core/run/ended-steps.ts';

export interface CeilingAdvice {
  readonly leastUsd: number;
  /** For all items that are left. */
  readonly enoughUsd: number;
  readonly itemsLeft: number;
}

type Refusal = BudgetRefusal & { readonly step_id?: string };

function isRefusal(details: JsonObject | undefined): details is JsonObject & Refusal {
  return typeof details?.minimum_usd === 'number';
}

/** Calls that are still to be paid: what runs has reserved its price already. */
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

/** @param run whose step waits, once it is known; null for a review of something else, or whose figures are not shown */
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
  return leastUsd === null || enoughUsd === null ? null : { leastUsd, enoughUsd, itemsLeft };
}

/** Every digit, unlike an amount to read: this one is typed in again. */
export function exactUsd(usd: number): string {
  return usd.toFixed(9).replace(/\.?0+$/, '');
}

/** Why the ceiling cannot be meant; null when it can. */
export function findCeilingFault(text: string, advice: CeilingAdvice | null): string | null {
  const usd = Number(text);
  if (text.trim() === '' || !(usd > 0)) return 'Give the new ceiling in USD.';
  if (advice === null || usd >= advice.leastUsd) return null;
  return `${exactUsd(usd)} USD is too low: the next call needs ${exactUsd(advice.leastUsd)} USD at least.`;
}
