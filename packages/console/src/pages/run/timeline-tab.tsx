import type { RunTimeline } from '@capstan/core/contracts/run-picture';
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { timelineQuery } from '../../api/runs.ts';
import { Button, EmptyState, fieldClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { useAtTick } from '../../shared/use-at-tick.ts';
import { useNow } from '../../shared/use-now.ts';
import { describeRemainder } from '../../timeline/ghost-words.ts';
import { MoneyInTime } from '../../timeline/money-in-time.tsx';
import { spentBelow } from '../../timeline/money-model.ts';
import { toPicture } from '../../timeline/picture.ts';
import { type TimeScale, type TimeSpan, zoomBy, zoomTo } from '../../timeline/scale.ts';
import { Timeline } from '../../timeline/timeline.tsx';
import { TimelineLegend } from '../../timeline/timeline-legend.tsx';
import {
  callsAt,
  isCancelled,
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
  const { awaiting } = run;
  const picture = useMemo(
    () => toPicture(calls, { steps, outlook, open, all, now, isLive, awaiting }),
    [calls, steps, outlook, open, all, now, isLive, awaiting],
  );
  const { rows, remainder } = picture;
  const { scale, part, setPart, zoom } = useZoom(picture.scale);
  if (rows.length === 0) return <NoCalls />;
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
        {by === 'time' ? (
          <ZoomButtons isWhole={part === null} onZoom={zoom} onWhole={() => setPart(null)} />
        ) : null}
        <TimelineLegend
          hasPlan={outlook !== null}
          hasCancelled={calls.some(isCancelled)}
          hasFolds={by === 'time' && scale.folds.length > 0}
        />
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
        onZoom={setPart}
        onWheel={zoom}
      />
    </>
  );
}

function NoCalls(): ReactElement {
  return (
    <EmptyState title="No calls yet">When instances are called, each call appears here over time.</EmptyState>
  );
}

/** The part of the time that is shown; null: all of it. */
function useZoom(whole: TimeScale) {
  const [part, setPart] = useState<TimeSpan | null>(null);
  const scale = useMemo(() => zoomTo(whole, part), [whole, part]);
  const zoom = (factor: number, around?: number): void =>
    setPart(zoomBy(whole, part, around === undefined ? { factor } : { factor, around }));
  return { scale, part, setPart, zoom };
}

interface ZoomButtonsProps {
  readonly isWhole: boolean;
  readonly onZoom: (factor: number) => void;
  readonly onWhole: () => void;
}

/** Dragging over the axis zooms too, and the wheel with Ctrl. */
function ZoomButtons({ isWhole, onZoom, onWhole }: ZoomButtonsProps): ReactElement {
  return (
    <span
      className="flex items-center"
      role="group"
      aria-label="Zoom"
      title="Or drag over the axis; Ctrl and the wheel"
    >
      <Button look="bare" aria-label="Zoom in" onClick={() => onZoom(2)}>
        +
      </Button>
      <Button look="bare" aria-label="Zoom out" disabled={isWhole} onClick={() => onZoom(0.5)}>
        −
      </Button>
      <Button look="bare" disabled={isWhole} onClick={onWhole}>
        Whole run
      </Button>
    </span>
  );
}
