import type { Budget } from '@capstan/core/contracts/money';
import type { ReactElement } from 'react';
import { formatUsd } from '../shared/format.ts';
import { useNow } from '../shared/use-now.ts';
import { describeLeft, describeReset, shareOfDay, sharesOf } from './budget-model.ts';

/** Spent, reserved (hatched) and remaining money of a day's limit, with a mark for the time of day. */
export function LimitBar({ budget }: { readonly budget: Budget }): ReactElement {
  const now = useNow();
  const { spent, reserved } = sharesOf(budget);
  const limit = budget.daily_limit_usd === 0 ? '' : ` of ${formatUsd(budget.daily_limit_usd)}`;
  return (
    <div>
      <p className="figure flex flex-wrap items-baseline justify-between gap-x-3">
        <span>
          <span className="text-2xl font-semibold tracking-tight">{formatUsd(budget.spent_usd)}</span>
          <span className="text-sm text-muted">{limit}</span>
        </span>
        <span className="text-sm text-muted">{describeLeft(budget)}</span>
      </p>
      <div className="relative mt-2 flex h-2.5 overflow-hidden rounded-full bg-quiet-soft" aria-hidden="true">
        <span
          className={budget.daily_limit_usd > 0 && spent > 0.9 ? 'bg-failed' : 'bg-accent'}
          style={{ width: `${spent * 100}%` }}
        />
        <span className="hatched" style={{ width: `${reserved * 100}%` }} />
        <span
          className="absolute inset-y-0 w-0.5 bg-text/60"
          style={{ left: `${shareOfDay(budget, now) * 100}%` }}
        />
      </div>
      <p className="figure mt-1.5 flex flex-wrap justify-between gap-x-3 text-xs text-muted">
        <span>
          {budget.reserved_usd === 0
            ? 'No reserved funds'
            : `${formatUsd(budget.reserved_usd)} reserved for open calls`}
        </span>
        <span>{describeReset(budget)}</span>
      </p>
    </div>
  );
}
