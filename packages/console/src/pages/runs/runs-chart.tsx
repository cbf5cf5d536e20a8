import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { runsSummaryQuery } from '../../api/runs.ts';
import { usePolling } from '../../live/live.tsx';
import type { RunsSearch } from '../../searches.ts';
import { formatMoment } from '../../shared/format.ts';
import { Panel } from '../../shared/parts.tsx';
import { StackedBars } from '../../shared/stacked-bars.tsx';
import { StateMark } from '../../shared/state-mark.tsx';
import { useNow } from '../../shared/use-now.ts';
import { countByState, toColumns, toSpan } from './model.ts';

const buckets = 60;

/** Runs by time and state; dragging selects a time range, a click on a state selects it. */
export function RunsChart({ search, onChange }: RunsChartProps): ReactElement | null {
  const span = toSpan(search, useNow());
  const polling = usePolling() || 15_000;
  const { state: _state, ...filter } = search;
  const { data } = useQuery({
    ...runsSummaryQuery({ ...filter, ...span, buckets }),
    refetchInterval: polling,
    placeholderData: (known) => known,
  });
  if (data === undefined) return null;
  const counts = countByState(data);
  const choose = (first: number, last: number): void => {
    const since = data.buckets[first]?.at;
    const until = data.buckets[last + 1]?.at ?? span.until;
    if (since !== undefined) onChange({ since, until });
  };
  return (
    <Panel className="mb-3">
      <StackedBars
        columns={toColumns(data)}
        label={`Runs by time: ${counts.map(([state, count]) => `${count} ${state}`).join(', ') || 'none'}`}
        onChoose={choose}
      />
      <div className="mt-2 flex flex-wrap items-center gap-x-5 gap-y-1 text-xs text-muted">
        <span className="figure">{formatMoment(span.since)}</span>
        <span className="flex flex-1 flex-wrap justify-center gap-x-4 gap-y-1">
          {counts.map(([state, count]) => (
            <button
              key={state}
              type="button"
              aria-pressed={search.state === state}
              onClick={() => onChange({ state: search.state === state ? undefined : state })}
              className="flex items-center gap-1.5 rounded px-1 hover:bg-sunken aria-pressed:bg-accent-soft"
            >
              <StateMark state={state} />
              <span className="figure">{count}</span>
            </button>
          ))}
        </span>
        <span className="figure">{formatMoment(span.until)}</span>
      </div>
      {data.searched_since === undefined ? null : (
        <p className="mt-1 text-xs text-waiting">
          Bars and counts are of the newest 10,000 runs, since {formatMoment(data.searched_since)}.
        </p>
      )}
    </Panel>
  );
}

export interface RunsChartProps {
  readonly search: RunsSearch;
  readonly onChange: (part: Partial<RunsSearch>) => void;
}
