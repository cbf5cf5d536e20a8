import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactElement, useRef } from 'react';
import { Icon } from '../shared/icon.tsx';
import { formatAmount } from '../shared/money.ts';
import { toneFill } from '../shared/state.ts';
import { formatDuration } from '../shared/time.ts';
import { type Bar, sumOfCalls, toMoneyBars, toTimeBars } from './bars.ts';
import type { TimeScale } from './scale.ts';
import type { TimelineLine } from './timeline-model.ts';

export interface TimelineProps {
  readonly rows: readonly TimelineLine[];
  readonly scale: TimeScale;
  readonly by: 'time' | 'money';
  readonly now: number;
  readonly selected: string | undefined;
  readonly onSelect: (step: string, item: number | null) => void;
  readonly onToggle: (step: string) => void;
}

const rowHeight = 34;

export function Timeline(props: TimelineProps): ReactElement {
  const { rows, scale, by, now, selected, onSelect, onToggle } = props;
  const place = useRef<HTMLDivElement>(null);
  const most = Math.max(
    1e-12,
    ...rows.map(({ calls }) =>
      Math.max(
        sumOfCalls(calls),
        calls.reduce((sum, { expected_usd }) => sum + (expected_usd ?? 0), 0),
      ),
    ),
  );
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
      <div className="relative" style={{ height: lines.getTotalSize() }}>
        {lines.getVirtualItems().map(({ index, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const bars = by === 'time' ? toTimeBars(row, { scale, now }) : toMoneyBars(row, most);
          const isSelected = row.step_id === selected;
          return (
            <div
              key={row.key}
              className={`absolute inset-x-0 flex items-center border-b border-line ${isSelected ? 'bg-accent-soft' : 'hover:bg-sunken/60'}`}
              style={{ top: start, height: rowHeight }}
            >
              <RowName row={row} onSelect={onSelect} onToggle={onToggle} />
              <div className="relative h-full min-w-0 flex-1">
                {by === 'time' ? <Folds scale={scale} /> : null}
                {bars.map((bar) => (
                  <BarView key={bar.key} bar={bar} />
                ))}
              </div>
              <span className="figure w-24 shrink-0 px-3 text-right text-xs text-muted">
                {totalOf(row, by, now)}
              </span>
            </div>
          );
        })}
      </div>
    </section>
  );
}

function totalOf({ calls }: TimelineLine, by: TimelineProps['by'], now: number): string {
  if (by === 'money') return `${formatAmount(sumOfCalls(calls))}`;
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
  const { fold, step_id, item, depth } = row;
  return (
    <div className={`flex w-32 shrink-0 items-center gap-1 md:w-52 ${depth === 1 ? 'pl-8' : 'pl-3'}`}>
      {fold === null ? null : (
        <button
          type="button"
          aria-expanded={fold.isOpen}
          aria-label={`Items of ${step_id}`}
          onClick={() => onToggle(step_id)}
        >
          <Icon name={fold.isOpen ? 'chevron-down' : 'chevron-right'} size={14} className="text-muted" />
        </button>
      )}
      <button
        type="button"
        onClick={() => onSelect(step_id, item)}
        className="min-w-0 truncate text-left text-sm hover:text-accent hover:underline"
      >
        {item === null ? step_id : `item ${item}`}
      </button>
      {fold === null ? null : <span className="figure shrink-0 text-xs text-muted">× {fold.items}</span>}
    </div>
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}

const heights = { waiting: 6, called: 10, expected: 18 } as const;

function BarView({ bar: { left, width, tone, kind, title, lane } }: { readonly bar: Bar }): ReactElement {
  const looks = {
    waiting: 'bg-quiet-soft',
    called: toneFill[tone],
    expected: 'border border-dashed border-muted/70',
  };
  return (
    <span
      title={title}
      className={`absolute rounded-sm ${looks[kind]}`}
      style={{
        left: percent(left),
        width: `max(2px, ${percent(width)})`,
        height: heights[kind],
        top: rowHeight / 2 - heights[kind] / 2 + (lane === 0 ? 0 : lane * 4),
      }}
    />
  );
}

/** Where idle time was left out. */
function Folds({ scale }: { readonly scale: TimeScale }): ReactElement {
  return (
    <>
      {scale.folds.map(({ from, to }) => (
        <span
          key={from}
          title={`${formatDuration(to - from)} in which nothing happened`}
          className="absolute inset-y-0 border-x border-dotted border-line-strong bg-sunken"
          style={{ left: percent(scale.at(from)), width: percent(scale.at(to) - scale.at(from)) }}
        />
      ))}
    </>
  );
}
