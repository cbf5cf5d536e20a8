import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactElement, useRef } from 'react';
import type { RunEvent } from '../../../../src/contracts/event.ts';
import { formatExact, formatTimeOfDay } from '../../shared/format.ts';
import { toneText } from '../../shared/state.ts';
import { describeEvent, toneOf } from './log-model.ts';

export interface EventListProps {
  readonly events: readonly RunEvent[];
  readonly selected?: string | undefined;
  readonly onSelect?: (step: string) => void;
}

const lineHeight = 26;

export function EventList({ events, selected, onSelect }: EventListProps): ReactElement {
  const place = useRef<HTMLDivElement>(null);
  const lines = useVirtualizer({
    count: events.length,
    getScrollElement: () => place.current,
    estimateSize: () => lineHeight,
    overscan: 20,
  });
  return (
    <section
      ref={place}
      tabIndex={0}
      aria-label="Log"
      className="scrolls max-h-[max(20rem,calc(100dvh-22rem))] rounded-lg border border-line bg-surface"
    >
      <div className="relative min-w-2xl" style={{ height: lines.getTotalSize() }}>
        {lines.getVirtualItems().map(({ index, start }) => {
          const event = events[index];
          if (event === undefined) return null;
          const { step_id } = event;
          return (
            <div
              key={event.seq}
              className={`absolute inset-x-0 flex items-center gap-3 px-3 font-mono text-xs ${step_id !== undefined && step_id === selected ? 'bg-accent-soft' : ''}`}
              style={{ top: start, height: lineHeight }}
            >
              <time dateTime={event.at} title={formatExact(event.at)} className="figure shrink-0 text-muted">
                {formatTimeOfDay(event.at)}
              </time>
              <span className={`w-32 shrink-0 ${toneText[toneOf(event)]}`}>{event.type}</span>
              {step_id === undefined ? null : (
                <button
                  type="button"
                  className="shrink-0 font-semibold hover:underline"
                  onClick={() => onSelect?.(step_id)}
                >
                  {step_id}
                  {event.item === undefined ? '' : `[${event.item}]`}
                  {event.attempt === undefined ? '' : ` #${event.attempt}`}
                </button>
              )}
              <span className="truncate text-muted" title={describeEvent(event)}>
                {describeEvent(event)}
              </span>
            </div>
          );
        })}
      </div>
    </section>
  );
}
