import type { CostPeriod, CostSeries } from '@capstan/core/contracts/money';
import type { ReactElement } from 'react';
import type { Grouping } from '../../api/money.ts';
import { labelColumns, roundTop } from '../../shared/bar-column.ts';
import { formatUsd } from '../../shared/format.ts';
import { StackedBars } from '../../shared/stacked-bars.tsx';
import { sumSeries, toCostColumns } from './model.ts';

const height = 150;

export interface CostChartProps {
  readonly costs: CostSeries;
  readonly period: CostPeriod;
  readonly by: Grouping;
}

/** Costs by day, or of one day by hour, with both axes; the day's limit is a dashed line. */
export function CostChart({ costs, period, by }: CostChartProps): ReactElement {
  const columns = toCostColumns(costs);
  const sums = sumSeries(costs);
  const isByHour = period === 'day';
  const limit = isByHour ? 0 : costs.daily_limit_usd;
  const greatest = Math.max(
    limit,
    ...columns.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0)),
  );
  const top = roundTop(greatest);
  const labels = labelColumns(
    columns.map(({ key }) => key),
    (at) => nameOf(at, isByHour),
  );
  return (
    <figure className="m-0">
      <div className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-2">
        <div
          className="figure flex flex-col justify-between text-right text-xs text-muted"
          aria-hidden="true"
        >
          <span>{formatUsd(top)}</span>
          <span>{formatUsd(top / 2)}</span>
          <span>0</span>
        </div>
        <StackedBars
          columns={columns}
          height={height}
          top={top}
          label={`Costs by ${by}: ${sums.map(({ name, usd }) => `${name} ${formatUsd(usd)}`).join(', ')}`}
          {...(limit === 0 ? {} : { mark: limit })}
        />
        <span />
        <div className="figure relative h-5 text-xs text-muted">
          {labels.map(({ text, at }) => (
            <span
              key={text}
              className="absolute top-0.5 -translate-x-1/2 whitespace-nowrap"
              style={{ left: `${at * 100}%` }}
            >
              {text}
            </span>
          ))}
        </div>
      </div>
      <figcaption className="flex flex-wrap gap-x-4 text-xs text-muted">
        <span>USD {isByHour ? 'an hour' : 'a day'}</span>
        {limit === 0 ? null : (
          <span className="flex items-center gap-1.5">
            <span className="inline-block w-6 border-t border-dashed border-failed" aria-hidden="true" />
            daily limit {formatUsd(limit)}
          </span>
        )}
      </figcaption>
    </figure>
  );
}

function nameOf(at: string, isByHour: boolean): string {
  const moment = new Date(at);
  return isByHour
    ? moment.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })
    : moment.toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
}
