import { type PointerEvent, type ReactElement, type RefObject, useEffect, useRef, useState } from 'react';
import { formatClock, formatDuration, formatExact, formatTimeOfDay } from '../shared/format.ts';
import { useWidth } from '../shared/use-width.ts';
import { labelsOf, momentAt, partBetween, type TimeScale, type TimeSpan } from './scale.ts';

export interface AxisProps {
  readonly scale: TimeScale;
  readonly now: number;
  readonly isLive: boolean;
  /** The scrolling box of the rows, over which the pointer shows its time. */
  readonly box: RefObject<HTMLElement | null>;
  readonly onZoom: (part: TimeSpan) => void;
}

/** Time since the start, and the time of the start; it stays while rows scroll. Dragging over it zooms. */
export function Axis({ scale, now, isLive, box, onZoom }: AxisProps): ReactElement {
  const lane = useRef<HTMLDivElement>(null);
  const width = useWidth(lane);
  const began = new Date(scale.first).toISOString();
  const nowAt = scale.at(now);
  const sinceStart = (moment: number): string =>
    moment === scale.origin ? '0' : `+${formatDuration(moment - scale.origin)}`;
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
        ref={lane}
        className="relative h-full min-w-0 flex-1 cursor-crosshair touch-none select-none"
        role="img"
        aria-label={`Time since ${formatExact(new Date(scale.origin).toISOString())}`}
      >
        {labelsOf(scale, width, sinceStart).map(({ moment, text, place, isBefore }) => (
          <span
            key={moment}
            title={formatExact(new Date(moment).toISOString())}
            className={`figure absolute inset-y-0 flex items-center whitespace-nowrap px-1 ${isBefore ? '-translate-x-full border-r border-line-strong' : 'border-l border-line-strong'}`}
            style={{ left: percent(place) }}
          >
            {text}
          </span>
        ))}
        {isLive && nowAt >= 0 && nowAt <= 1 ? (
          <span
            title={`now, ${formatExact(new Date(now).toISOString())}`}
            className="absolute inset-y-0 w-0.5 bg-accent"
            style={{ left: percent(nowAt) }}
          />
        ) : null}
        <Dragged lane={lane} scale={scale} onZoom={onZoom} />
        <Pointed lane={lane} box={box} scale={scale} />
      </div>
      <span className="w-24 shrink-0" />
    </div>
  );
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}

function placeIn(lane: HTMLElement | null, clientX: number): number {
  const { left = 0, width = 1 } = lane?.getBoundingClientRect() ?? {};
  return (clientX - left) / width;
}

interface LaneProps {
  readonly lane: RefObject<HTMLDivElement | null>;
  readonly scale: TimeScale;
}

/** Covers the axis: a drag chooses a part of the time. */
function Dragged({ lane, scale, onZoom }: LaneProps & Pick<AxisProps, 'onZoom'>): ReactElement {
  const [span, setSpan] = useState<readonly [number, number] | null>(null);
  const place = (event: PointerEvent): number => placeIn(lane.current, event.clientX);
  const end = (event: PointerEvent): void => {
    if (span === null) return;
    const part = partBetween(scale, span[0], place(event));
    setSpan(null);
    if (part !== null) onZoom(part);
  };
  const [one, other] = span ?? [0, 0];
  return (
    <div
      className="absolute inset-0"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setSpan([place(event), place(event)]);
      }}
      onPointerMove={(event) => setSpan((known) => known && [known[0], place(event)])}
      onPointerUp={end}
      onPointerCancel={() => setSpan(null)}
    >
      {span === null ? null : (
        <span
          className="absolute inset-y-0 bg-accent/25"
          style={{ left: percent(Math.min(one, other)), width: percent(Math.abs(one - other)) }}
        />
      )}
    </div>
  );
}

interface Pointer {
  readonly place: number;
  /** Height of the box, px. */
  readonly height: number;
}

/** A line under the pointer, with its exact time. */
function Pointed({ lane, box, scale }: LaneProps & Pick<AxisProps, 'box'>): ReactElement | null {
  const [pointer, setPointer] = useState<Pointer | null>(null);
  useEffect(() => {
    const area = box.current;
    if (area === null) return;
    const follow = (event: globalThis.PointerEvent): void => {
      const place = placeIn(lane.current, event.clientX);
      const isMouse = event.pointerType === 'mouse';
      setPointer(isMouse && place >= 0 && place <= 1 ? { place, height: area.clientHeight } : null);
    };
    const leave = (): void => setPointer(null);
    area.addEventListener('pointermove', follow);
    area.addEventListener('pointerleave', leave);
    return () => {
      area.removeEventListener('pointermove', follow);
      area.removeEventListener('pointerleave', leave);
    };
  }, [box, lane]);
  if (pointer === null) return null;
  const moment = momentAt(scale, pointer.place);
  return (
    <span
      className="pointer-events-none absolute top-0 border-l border-accent"
      style={{ left: percent(pointer.place), height: pointer.height }}
    >
      <span
        className={`figure absolute top-0 whitespace-nowrap rounded bg-accent px-1 leading-7 text-on-accent ${pointer.place > 0.7 ? 'right-0' : 'left-0'}`}
      >
        {formatTimeOfDay(new Date(moment).toISOString())}, +{formatDuration(moment - scale.origin)}
      </span>
    </span>
  );
}
