import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactElement, useMemo, useRef } from 'react';
import { formatClock, formatDuration, formatExact, formatUsd } from '../shared/format.ts';
import { Icon } from '../shared/icon.tsx';
import { toneFill } from '../shared/state.ts';
import { barLooks } from './bar-looks.ts';
import { type Bar, toTimeBars } from './bars.ts';
import { describeGhost } from './ghost-words.ts';
import { mostOfRows, sumOfCalls, toMoneyBars } from './money-bars.ts';
import { type TimeScale, ticksOf } from './scale.ts';
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
}

const rowHeight = 34;

export function Timeline(props: TimelineProps): ReactElement {
  const { rows, scale, by, now, isLive, selected, onSelect, onToggle } = props;
  const place = useRef<HTMLDivElement>(null);
  const most = useMemo(() => mostOfRows(rows), [rows]);
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
      {by === 'time' ? <Axis scale={scale} now={now} isLive={isLive} /> : null}
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
              <div className="relative h-full min-w-0 flex-1">
                {by === 'time' ? <Folds scale={scale} /> : null}
                {by === 'time' && isLive ? <Now left={scale.at(now)} /> : null}
                {bars.map((bar) => (
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
  const { fold, step_id, item, depth, more } = row;
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
      {fold === null ? null : <span className="figure shrink-0 text-xs text-muted">{fold.items} items</span>}
    </div>
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}

const heights = { waiting: 6, retry: 8, called: 10, expected: 18, planned: 18, perhaps: 18 } as const;

function BarView({ bar: { left, width, tone, kind, title, lane } }: { readonly bar: Bar }): ReactElement {
  return (
    <span
      title={title}
      className={`absolute rounded-sm ${kind === 'called' ? toneFill[tone] : barLooks[kind]}`}
      style={{
        left: percent(left),
        width: `max(2px, ${percent(width)})`,
        height: heights[kind],
        top: rowHeight / 2 - heights[kind] / 2 + (lane === 0 ? 0 : lane * 4),
      }}
    />
  );
}

/** Time since the start, and the time of the start; it stays while rows scroll. */
function Axis({ scale, now, isLive }: Pick<TimelineProps, 'scale' | 'now' | 'isLive'>): ReactElement {
  const { first, at } = scale;
  const began = new Date(first).toISOString();
  const nowAt = at(now);
  return (
    <div className="sticky top-0 z-10 flex h-7 items-center border-b border-line bg-surface text-xs text-muted">
      <time
        dateTime={began}
        title={formatExact(began)}
        className="figure w-32 shrink-0 truncate pl-3 md:w-52"
      >
        {formatClock(began)}
      </time>
      <div
        className="relative h-full min-w-0 flex-1"
        role="img"
        aria-label={`Time since ${formatExact(began)}`}
      >
        {ticksOf(scale).map((tick) => (
          <span
            key={tick}
            title={formatExact(new Date(tick).toISOString())}
            className={`figure absolute inset-y-0 flex items-center whitespace-nowrap border-l border-line-strong px-1 ${at(tick) > 0.93 ? '-translate-x-full border-l-0 border-r' : ''}`}
            style={{ left: percent(at(tick)) }}
          >
            {tick === first ? '0' : `+${formatDuration(tick - first)}`}
          </span>
        ))}
        {isLive ? (
          <span
            title={`now, ${formatExact(new Date(now).toISOString())}`}
            className="absolute inset-y-0 w-0.5 bg-accent"
            style={{ left: percent(nowAt) }}
          />
        ) : null}
      </div>
      <span className="w-24 shrink-0" />
    </div>
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
