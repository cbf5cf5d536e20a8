import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { timelineQuery } from '../../api/runs.ts';
import { EmptyState, fieldClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { useNow } from '../../shared/use-now.ts';
import { MoneyInTime } from '../../timeline/money-in-time.tsx';
import { spentBelow } from '../../timeline/money-model.ts';
import { createTimeScale } from '../../timeline/scale.ts';
import { Timeline } from '../../timeline/timeline.tsx';
import { busyOf, callsAt, readCalls, sortBySurprise, toRows } from '../../timeline/timeline-model.ts';
import type { RunViewProps } from './run-view-props.ts';

type By = 'time' | 'money';

export function TimelineTab({ run, search, onSearch }: RunViewProps): ReactElement {
  const query = useQuery({
    ...timelineQuery(run.run_id),
    refetchInterval: run.finished_at === null ? 2_000 : false,
  });
  const [by, setBy] = useState<By>('time');
  const [isWorst, setWorst] = useState(false);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [all, setAll] = useState<ReadonlySet<string>>(new Set());
  const clock = useNow();
  const now = search.at === undefined ? clock : Date.parse(search.at);
  const toggle = (id: string): void => {
    setAll(
      open.has(id) && !all.has(id) ? new Set([...all, id]) : new Set([...all].filter((one) => one !== id)),
    );
    if (!open.has(id)) setOpen(new Set([...open, id]));
    else if (all.has(id)) setOpen(new Set([...open].filter((one) => one !== id)));
  };
  return (
    <QueryView query={query}>
      {(timeline) => {
        const calls = callsAt(readCalls(timeline), search.at);
        if (calls.length === 0) {
          return (
            <EmptyState title="No calls yet">
              When instances are called, each call stands here in time.
            </EmptyState>
          );
        }
        const scale = createTimeScale(busyOf(calls, now));
        const rows = toRows(calls, { open, all, now });
        return (
          <>
            <div className="mb-2 flex flex-wrap items-center gap-3 text-sm">
              <select
                aria-label="Timeline by"
                className={fieldClass}
                value={by}
                onChange={({ target }) => setBy(target.value === 'money' ? 'money' : 'time')}
              >
                <option value="time">by time</option>
                <option value="money">by money</option>
              </select>
              <label className="flex items-center gap-1.5">
                <input type="checkbox" checked={isWorst} onChange={() => setWorst(!isWorst)} />
                worse than expected first
              </label>
              <Legend />
            </div>
            <MoneyInTime
              calls={calls}
              now={now}
              scale={scale}
              below={search.at === undefined ? spentBelow(run, calls) : 0}
            />
            <Timeline
              rows={isWorst ? sortBySurprise(rows, by) : rows}
              scale={scale}
              by={by}
              now={now}
              selected={search.step}
              onSelect={(step, item) => onSearch({ step, item: item ?? undefined })}
              onToggle={toggle}
            />
          </>
        );
      }}
    </QueryView>
  );
}

function Legend(): ReactElement {
  return (
    <span className="flex flex-wrap items-center gap-3 text-xs text-muted">
      <span className="flex items-center gap-1">
        <span className="h-2 w-4 rounded-sm bg-quiet-soft" /> waited
      </span>
      <span className="flex items-center gap-1">
        <span className="h-2 w-4 rounded-sm bg-done" /> called
      </span>
      <span className="flex items-center gap-1">
        <span className="h-2.5 w-4 rounded-sm border border-dashed border-muted" /> expected
      </span>
    </span>
  );
}
