import { readStepLog } from '@capstan/core/call/log-lines';
import type { RunEvent } from '@capstan/core/contracts/event';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactElement, useEffect, useRef } from 'react';
import { formatExact, formatTimeOfDay } from '../../shared/format.ts';
import { toneText } from '../../shared/state.ts';
import { describeEvent, nameOf, suffixOf, toneOf } from './log-model.ts';

export interface EventListProps {
  readonly events: readonly RunEvent[];
  readonly selected?: string | undefined;
  readonly onSelect?: ((step: string) => void) | undefined;
  /** Long lines wrap instead of being cut. */
  readonly wraps?: boolean | undefined;
}

const lineHeight = 26;

export function EventList({ events, selected, onSelect, wraps = false }: EventListProps): ReactElement {
  const place = useRef<HTMLDivElement>(null);
  const lines = useVirtualizer({
    count: events.length,
    getScrollElement: () => place.current,
    estimateSize: () => lineHeight,
    overscan: 20,
  });
  // Measured heights belong to the other mode.
  useEffect(() => {
    if (!wraps) lines.measure();
  }, [wraps, lines]);
  return (
    <section
      ref={place}
      tabIndex={0}
      aria-label="Log"
      className="scrolls max-h-[max(20rem,calc(100dvh-22rem))] rounded-lg border border-line bg-surface"
    >
      <div className={`relative ${wraps ? '' : 'min-w-2xl'}`} style={{ height: lines.getTotalSize() }}>
        {lines.getVirtualItems().map(({ index, start }) => {
          const event = events[index];
          if (event === undefined) return null;
          return (
            <div
              key={event.seq}
              ref={wraps ? lines.measureElement : undefined}
              data-index={index}
              className="absolute inset-x-0"
              style={wraps ? { top: start } : { top: start, height: lineHeight }}
            >
              <EventLine
                event={event}
                isSelected={event.step_id !== undefined && event.step_id === selected}
                onSelect={onSelect}
                wraps={wraps}
              />
            </div>
          );
        })}
      </div>
    </section>
  );
}

interface EventLineProps extends Pick<EventListProps, 'onSelect' | 'wraps'> {
  readonly event: RunEvent;
  readonly isSelected: boolean;
}

function EventLine({ event, isSelected, onSelect, wraps }: EventLineProps): ReactElement {
  const { step_id } = event;
  const said = describeEvent(event);
  const from = readStepLog(event)?.endpoint;
  return (
    <div
      className={`flex gap-3 px-3 font-mono text-xs ${wraps === true ? 'items-baseline py-1' : 'h-full items-center'} ${isSelected ? 'bg-accent-soft' : ''}`}
    >
      <time dateTime={event.at} title={formatExact(event.at)} className="figure shrink-0 text-muted">
        {formatTimeOfDay(event.at)}
      </time>
      <span className={`w-32 shrink-0 ${toneText[toneOf(event)]}`}>{nameOf(event)}</span>
      {step_id === undefined ? null : (
        <button
          type="button"
          className="shrink-0 font-semibold hover:underline"
          onClick={() => onSelect?.(step_id)}
        >
          {step_id}
          {suffixOf(event)}
        </button>
      )}
      <span
        className={`${wraps === true ? 'min-w-0 whitespace-pre-wrap break-words' : 'truncate'} ${from === undefined ? 'text-muted' : ''}`}
        title={from === undefined ? said : `${said}\n${from}`}
      >
        {said}
      </span>
    </div>
  );
}
