import type { CostSeries } from '@capstan/core/contracts/money';
import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { labelColumns, placesOf, roundTop } from '../../shared/bar-column.ts';
import { formatUsd } from '../../shared/format.ts';
import { StackedBars } from '../../shared/stacked-bars.tsx';
import { useIsNarrow } from '../../shared/use-is-narrow.ts';
import {
  addressOfBuckets,
  type CostColumn,
  type CostRow,
  formatCount,
  nameTick,
  toColumns,
} from './model.ts';

const height = 150;

export interface CostChartProps {
  readonly costs: CostSeries;
  readonly rows: readonly CostRow[];
  /** Of the groups, for screen readers. */
  readonly by: string;
}

/** Costs by hour, day or month, with both axes; the day's limit is a dashed line. A bar leads to its calls. */
export function CostChart({ costs, rows, by }: CostChartProps): ReactElement {
  const navigate = useNavigate();
  const isNarrow = useIsNarrow();
  const [pointed, setPointed] = useState<number | null>(null);
  const columns = toColumns(costs, rows);
  const limit = costs.bucket === 'day' ? costs.daily_limit_usd : 0;
  const top = roundTop(Math.max(limit, ...columns.map(({ usd }) => usd)));
  const labels = labelColumns(
    columns.map(({ key }) => key),
    (at) => nameTick(at, costs),
    isNarrow ? 3 : 7,
  );
  const column = pointed === null ? undefined : columns[pointed];
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
        <div className="relative min-w-0">
          <StackedBars
            columns={columns}
            height={height}
            top={top}
            label={`Costs by ${by}: ${rows.map(({ names, usd }) => `${names.join(' × ')} ${formatUsd(usd)}`).join(', ')}`}
            onPoint={setPointed}
            onChoose={(first, last) => {
              void navigate({ to: '/calls', search: addressOfBuckets(costs, first, last) });
            }}
            {...(limit === 0 ? {} : { mark: limit })}
          />
          {column === undefined || pointed === null ? null : (
            <Tooltip column={column} at={(pointed + 0.5) / placesOf(columns.length)} />
          )}
        </div>
        <span />
        <div className="figure relative h-5 text-xs text-muted">
          {labels.map(({ text, at }) => (
            <span
              key={`${text} ${at}`}
              className="absolute top-0.5 -translate-x-1/2 whitespace-nowrap"
              style={{ left: `${at * 100}%` }}
            >
              {text}
            </span>
          ))}
        </div>
      </div>
      <figcaption className="flex flex-wrap gap-x-4 text-xs text-muted">
        <span>
          USD by {costs.bucket}, {costs.timezone}; click a bar for its calls, drag for those of several
        </span>
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

/** @param at the middle of the column, 0 to 1 */
function Tooltip({ column, at }: { readonly column: CostColumn; readonly at: number }): ReactElement {
  const shown = column.parts.filter(({ value }) => value > 0);
  const side = at < 0.5 ? { left: `${at * 100}%` } : { right: `${(1 - at) * 100}%` };
  return (
    <div
      aria-hidden="true"
      data-tooltip
      className="figure pointer-events-none absolute top-0 z-10 mx-3 max-w-64 rounded-md border border-line bg-raised px-3 py-2 text-xs shadow-float"
      style={side}
    >
      <p className="font-medium">{column.title}</p>
      <p>
        {formatUsd(column.usd)}, {formatCount(column.calls)} calls
        {column.tokens === 0 ? '' : `, ${formatCount(column.tokens)} tokens`}
      </p>
      {shown.map(({ name, value }) => (
        <p key={name} className="flex justify-between gap-3 text-muted">
          <span className="truncate">{name}</span>
          <span>{formatUsd(value)}</span>
        </p>
      ))}
    </div>
  );
}
