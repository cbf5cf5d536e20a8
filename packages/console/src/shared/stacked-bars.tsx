import { type PointerEvent, type ReactElement, useRef, useState } from 'react';
import { type BarColumn, placesOf } from './bar-column.ts';

export interface StackedBarsProps {
  readonly columns: readonly BarColumn[];
  /** Description for screen readers. */
  readonly label: string;
  readonly height?: number;
  /** A horizontal line, such as a limit. */
  readonly mark?: number;
  /** The value of the full height; default: the highest column. */
  readonly top?: number;
  readonly onChoose?: (first: number, last: number) => void;
  /** Receives the column below the pointer, so that the page shows it; null: none. Default: the title of a column. */
  readonly onPoint?: (index: number | null) => void;
}

const width = 1_000;

function sumOf({ parts }: BarColumn): number {
  return parts.reduce((sum, { value }) => sum + value, 0);
}

/** Columns over time, stacked by category; dragging selects a range. */
export function StackedBars({
  columns,
  label,
  height = 88,
  mark,
  top = 0,
  onChoose,
  onPoint,
}: StackedBarsProps): ReactElement {
  const place = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<readonly [number, number] | null>(null);
  const most = Math.max(1e-12, top, mark ?? 0, ...columns.map(sumOf));
  const step = width / placesOf(columns.length);
  const indexAt = (event: PointerEvent): number => {
    const box = place.current?.getBoundingClientRect();
    if (box === undefined) return 0;
    const index = Math.floor((((event.clientX - box.left) / box.width) * width) / step);
    return Math.min(columns.length - 1, Math.max(0, index));
  };
  const end = (): void => {
    if (drag !== null) onChoose?.(Math.min(...drag), Math.max(...drag));
    setDrag(null);
  };
  return (
    <svg
      ref={place}
      role="img"
      aria-label={label}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      className={`block w-full touch-none ${onChoose === undefined ? '' : 'cursor-crosshair'}`}
      height={height}
      onPointerDown={(event) => {
        if (onChoose === undefined) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setDrag([indexAt(event), indexAt(event)]);
      }}
      onPointerMove={(event) => {
        const index = indexAt(event);
        onPoint?.(index);
        if (drag !== null) setDrag([drag[0], index]);
      }}
      onPointerLeave={() => onPoint?.(null)}
      onPointerUp={end}
    >
      {columns.map((column, index) => (
        <Column
          key={column.key}
          column={column}
          left={index * step}
          width={step}
          scale={(height - 2) / most}
          height={height}
          hasTitle={onPoint === undefined}
        />
      ))}
      {mark === undefined || mark === 0 ? null : (
        <line
          x1="0"
          x2={width}
          y1={height - (mark * (height - 2)) / most}
          y2={height - (mark * (height - 2)) / most}
          className="stroke-failed"
          strokeDasharray="4 3"
          vectorEffect="non-scaling-stroke"
        />
      )}
      {drag === null ? null : (
        <rect
          x={Math.min(...drag) * step}
          width={(Math.abs(drag[1] - drag[0]) + 1) * step}
          y="0"
          height={height}
          className="fill-accent opacity-15"
        />
      )}
    </svg>
  );
}

interface ColumnProps {
  readonly column: BarColumn;
  readonly left: number;
  readonly width: number;
  readonly scale: number;
  readonly height: number;
  readonly hasTitle: boolean;
}

function Column({ column, left, width: wide, scale, height, hasTitle }: ColumnProps): ReactElement {
  let top = height;
  const inner = Math.max(1, wide - Math.min(3, wide * 0.2));
  return (
    <g>
      {hasTitle ? <title>{column.title}</title> : null}
      <rect x={left} y="0" width={wide} height={height} className="fill-transparent" />
      <rect x={left} y={height - 1} width={inner} height="1" className="fill-line" />
      {column.parts
        .filter(({ value }) => value > 0)
        .map(({ name, value, fill }) => {
          const high = Math.max(1.5, value * scale);
          top -= high;
          return <rect key={name} x={left} y={top} width={inner} height={high} className={fill} />;
        })}
    </g>
  );
}
