import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactElement, type RefObject, useEffect, useMemo, useRef } from 'react';
import { formatDuration, formatUsd } from '../shared/format.ts';
import { Icon } from '../shared/icon.tsx';
import { toneFill } from '../shared/state.ts';
import { Axis } from './axis.tsx';
import { barLooks } from './bar-looks.ts';
import { type Bar, toTimeBars } from './bars.ts';
import { describeGhost } from './ghost-words.ts';
import { mostOfRows, sumOfCalls, toMoneyBars } from './money-bars.ts';
import type { TimeScale, TimeSpan } from './scale.ts';
import type { TimelineLine } from './timeline-model.ts';

export interface TimelineProps {
  readonly rows: readonly TimelineLine[];
  readonly scale: TimeScale;
  readonly by: 'time' | 'money';
  readonly now: number;
  /** The run is open: bars after now are expected. */
  readonly isLive: boolean;
  readonly selected: string | undefined;
  readonly onSelect: (step: string, item: number | null) => void;
  readonly onToggle: (step: string) => void;
  /** Shows this part of the time. */
  readonly onZoom: (part: TimeSpan) => void;
  /** With Ctrl, the wheel zooms around the place under the pointer, 0 to 1. */
  readonly onWheel: (factor: number, around: number) => void;
}

const rowHeight = 34;

export function Timeline(props: TimelineProps): ReactElement {
  const { rows, scale, by, now, isLive, selected, onSelect, onToggle, onZoom, onWheel } = props;
  const place = useRef<HTMLDivElement>(null);
  const most = useMemo(() => mostOfRows(rows), [rows]);
  useWheelZoom(place, onWheel);
  const lines = useVirtualizer({
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  return (
    <section
      ref={place}
      tabIndex={0}
      aria-label="Timeline"
      className="scrolls max-h-[max(22rem,calc(100dvh-22rem))] rounded-lg border border-line bg-surface"
    >
      {by === 'time' ? <Axis scale={scale} now={now} isLive={isLive} box={place} onZoom={onZoom} /> : null}
      <div className="relative" style={{ height: lines.getTotalSize() }}>
        {lines.getVirtualItems().map(({ index, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const bars = by === 'time' ? toTimeBars(row, { scale, now }) : toMoneyBars(row, most, now);
          const isSelected = row.step_id === selected;
          return (
            <div
              key={row.key}
              className={`absolute inset-x-0 flex items-center border-b border-line ${isSelected ? 'bg-accent-soft' : 'hover:bg-sunken/60'}`}
              style={{ top: start, height: rowHeight }}
            >
              <RowName row={row} onSelect={onSelect} onToggle={onToggle} />
              <div className="relative h-full min-w-0 flex-1 overflow-hidden">
                {by === 'time' ? <Folds scale={scale} /> : null}
                {by === 'time' && isLive ? <Now left={scale.at(now)} /> : null}
                {bars.filter(isInView).map((bar) => (
                  <BarView key={bar.key} bar={bar} />
                ))}
                {row.note === undefined ? null : (
                  <span className="absolute inset-y-0 left-2 flex items-center text-xs text-muted">
                    {row.note}
                  </span>
                )}
              </div>
              <span className="figure w-24 shrink-0 px-3 text-right text-xs text-muted">
                {totalOf(row, by, now)}
                {row.ghost === null ? null : (
                  <span className="sr-only">, planned: {describeGhost(row.ghost, now)}</span>
                )}
              </span>
            </div>
          );
        })}
      </div>
    </section>
  );
}

function isInView({ left, width }: Bar): boolean {
  return left <= 1 && left + width >= 0;
}

/** React's own handler of the wheel cannot keep the page from zooming. */
function useWheelZoom(box: RefObject<HTMLElement | null>, onWheel: TimelineProps['onWheel']): void {
  const latest = useRef(onWheel);
  latest.current = onWheel;
  useEffect(() => {
    const area = box.current;
    if (area === null) return;
    const turn = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const { left, width } = (area.querySelector('[role=img]') ?? area).getBoundingClientRect();
      latest.current(event.deltaY < 0 ? 1.25 : 0.8, Math.min(1, Math.max(0, (event.clientX - left) / width)));
    };
    area.addEventListener('wheel', turn, { passive: false });
    return () => area.removeEventListener('wheel', turn);
  }, [box]);
}

/** For a step that has not begun, `~` and the expected value. */
function totalOf({ calls, ghost }: TimelineLine, by: TimelineProps['by'], now: number): string {
  if (calls.length === 0) {
    if (ghost === null) return '';
    return `~ ${by === 'money' ? formatUsd(ghost.expected_usd) : formatDuration(ghost.to - ghost.from)}`;
  }
  if (by === 'money') return formatUsd(sumOfCalls(calls));
  const begins = calls
    .map(({ ready_at, started_at }) => Date.parse(ready_at ?? started_at ?? ''))
    .filter(Number.isFinite);
  const ends = calls.map(({ finished_at }) => Date.parse(finished_at ?? '') || now);
  return begins.length === 0 ? '' : formatDuration(Math.max(...ends) - Math.min(...begins));
}

function RowName({
  row,
  onSelect,
  onToggle,
}: { readonly row: TimelineLine } & Pick<TimelineProps, 'onSelect' | 'onToggle'>): ReactElement {
  const { fold, step_id, item, depth, more, isRound = false } = row;
  if (more !== undefined) {
    return (
      <div className="flex w-64 shrink-0 items-center gap-2 whitespace-nowrap pl-8 text-xs text-muted">
        {more.shown} of {more.all} shown
        <button type="button" onClick={() => onToggle(step_id)} className="text-accent hover:underline">
          Show all
        </button>
      </div>
    );
  }
  return (
    <div className={`flex w-32 shrink-0 items-center gap-1 md:w-52 ${depth === 1 ? 'pl-8' : 'pl-3'}`}>
      {fold === null ? null : (
        <button
          type="button"
          aria-expanded={fold.isOpen}
          aria-label={`${isRound ? 'Rounds' : 'Items'} of ${step_id}`}
          onClick={() => onToggle(step_id)}
        >
          <Icon name={fold.isOpen ? 'chevron-down' : 'chevron-right'} size={14} className="text-muted" />
        </button>
      )}
      <button
        type="button"
        onClick={() => onSelect(step_id, item)}
        title={step_id}
        className="min-w-16 truncate text-left text-sm hover:text-accent hover:underline"
      >
        {item === null ? step_id : `${isRound ? 'round' : 'item'} ${item}`}
      </button>
      {fold === null ? null : (
        <span className="figure min-w-0 truncate text-xs text-muted">
          {countParts(fold.items, isRound)}
          {fold.cancelled === 0 ? null : `, ${fold.cancelled} stopped`}
          {fold.failed === 0 ? null : <span className="text-failed">, {fold.failed} failed</span>}
        </span>
      )}
    </div>
  );
}

function countParts(count: number, isRound: boolean): string {
  return `${count} ${isRound ? 'round' : 'item'}${count === 1 ? '' : 's'}`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}

const heights = {
  waiting: 6,
  retry: 8,
  called: 10,
  failed: 16,
  cancelled: 10,
  expected: 18,
  planned: 18,
  perhaps: 18,
} as const;

function BarView({ bar: { left, width, tone, kind, title, lane } }: { readonly bar: Bar }): ReactElement {
  return (
    <span
      title={title}
      className={`absolute rounded-sm ${kind === 'called' ? toneFill[tone] : barLooks[kind]}`}
      style={{
        left: percent(left),
        width: `max(${kind === 'failed' ? 4 : 2}px, ${percent(width)})`,
        height: heights[kind],
        top: rowHeight / 2 - heights[kind] / 2 + (lane === 0 ? 0 : lane * 4),
      }}
    />
  );
}

function Now({ left }: { readonly left: number }): ReactElement {
  return <span title="now" className="absolute inset-y-0 w-px bg-accent" style={{ left: percent(left) }} />;
}

/** The places of omitted idle time. */
function Folds({ scale }: { readonly scale: TimeScale }): ReactElement {
  return (
    <>
      {scale.folds.map(({ from, to }) => (
        <span
          key={from}
          title={`${formatDuration(to - from)} without a call`}
          className="absolute inset-y-0 border-x border-dotted border-line-strong bg-sunken"
          style={{ left: percent(scale.at(from)), width: percent(scale.at(to) - scale.at(from)) }}
        />
      ))}
    </>
  );
}
