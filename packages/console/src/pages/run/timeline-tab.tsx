import type { RunTimeline } from '@capstan/core/contracts/run-picture';
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { timelineQuery } from '../../api/runs.ts';
import { EmptyState, fieldClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { useAtTick } from '../../shared/use-at-tick.ts';
import { useNow } from '../../shared/use-now.ts';
import { describeRemainder } from '../../timeline/ghost-words.ts';
import { MoneyInTime } from '../../timeline/money-in-time.tsx';
import { spentBelow } from '../../timeline/money-model.ts';
import { toPicture } from '../../timeline/picture.ts';
import { Timeline } from '../../timeline/timeline.tsx';
import { TimelineLegend } from '../../timeline/timeline-legend.tsx';
import {
  callsAt,
  readCalls,
  sortByFailure,
  sortBySurprise,
  type TimelineLine,
} from '../../timeline/timeline-model.ts';
import type { RunViewProps } from './run-view-props.ts';
import { useOpenRows } from './use-open-rows.ts';
import { useOutlook } from './use-outlook.ts';

export function TimelineTab(props: RunViewProps): ReactElement {
  const { run } = props;
  const query = useQuery({
    ...timelineQuery(run.run_id),
    refetchInterval: run.finished_at === null ? 2_000 : false,
  });
  return <QueryView query={query}>{(timeline) => <Lanes {...props} timeline={timeline} />}</QueryView>;
}

type By = 'time' | 'money';
type RowOrder = 'start' | 'failure' | 'surprise';

function inOrder(rows: readonly TimelineLine[], order: RowOrder, by: By): readonly TimelineLine[] {
  if (order === 'failure') return sortByFailure(rows);
  return order === 'surprise' ? sortBySurprise(rows, by) : rows;
}

function Lanes({
  run,
  search: { at, step: selected },
  onSearch,
  timeline,
}: RunViewProps & { readonly timeline: RunTimeline }): ReactElement {
  const [by, setBy] = useState<By>('time');
  const [order, setOrder] = useState<RowOrder>('start');
  const { open, all, toggle } = useOpenRows();
  const clock = useNow();
  const now = at === undefined ? clock : Date.parse(at);
  const isLive = at === undefined && run.finished_at === null;
  const { outlook, error } = useOutlook(run, isLive);
  const steps = useAtTick(run.steps, clock);
  const calls = useMemo(() => callsAt(readCalls(timeline), at), [timeline, at]);
  const { rows, scale, remainder } = useMemo(
    () => toPicture(calls, { steps, outlook, open, all, now, isLive }),
    [calls, steps, outlook, open, all, now, isLive],
  );
  if (rows.length === 0) {
    return (
      <EmptyState title="No calls yet">
        When instances are called, each call appears here over time.
      </EmptyState>
    );
  }
  const expected = remainder === null ? null : describeRemainder(remainder, now);
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
        <select
          aria-label="Order of the rows"
          className={fieldClass}
          value={order}
          onChange={({ target }) => setOrder(target.value as RowOrder)}
        >
          <option value="start">first started first</option>
          <option value="failure">failures first</option>
          <option value="surprise">slowest vs. estimate first</option>
        </select>
        <TimelineLegend hasPlan={outlook !== null} />
      </div>
      {expected === null ? null : <p className="mb-2 text-sm text-muted">{expected}.</p>}
      {error === null ? null : (
        <p className="mb-2 text-sm text-muted">There is no plan of what is to come: {error.message}</p>
      )}
      <MoneyInTime
        calls={calls}
        now={now}
        scale={scale}
        below={at === undefined ? spentBelow(run, calls) : 0}
      />
      <Timeline
        rows={inOrder(rows, order, by)}
        scale={scale}
        by={by}
        now={now}
        isLive={isLive}
        selected={selected}
        onSelect={(step, item) => onSearch({ step, item: item ?? undefined })}
        onToggle={toggle}
      />
    </>
  );
}
