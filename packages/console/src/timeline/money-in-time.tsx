import { type ReactElement, useMemo } from 'react';
import { formatUsd } from '../shared/format.ts';
import { moneyCurve, mostOf, toCurvePaths } from './money-model.ts';
import type { TimeScale } from './scale.ts';
import type { TimelineCall } from './timeline-model.ts';

const width = 1_000;
const height = 36;

export interface MoneyInTimeProps {
  readonly calls: readonly TimelineCall[];
  /** Unix time, ms; in a past view, that moment. */
  readonly now: number;
  /** The scale of the lanes below. */
  readonly scale: TimeScale;
  /** USD that child runs have cost. */
  readonly below: number;
}

/** On the time scale of the lanes: the spent money, and on top of it the reserved money. */
export function MoneyInTime({ calls, now, scale, below }: MoneyInTimeProps): ReactElement | null {
  const points = useMemo(() => moneyCurve(calls, now), [calls, now]);
  const last = points.at(-1);
  const most = mostOf(points);
  if (last === undefined || most === 0) return null;
  const { spent, held } = toCurvePaths(points, { width, height, at: scale.at });
  const words = `${formatUsd(last.spent_usd)} spent, ${formatUsd(last.held_usd)} reserved`;
  return (
    <div className="mb-2 flex items-center rounded-lg border border-line bg-surface py-1.5 text-xs">
      <div className="figure w-32 shrink-0 px-3 md:w-52">
        <div className="flex items-center gap-1.5">
          <span className="size-2 shrink-0 rounded-sm bg-accent" /> {formatUsd(last.spent_usd)} spent
        </div>
        <div className="flex items-center gap-1.5 text-muted">
          <span className="size-2 shrink-0 rounded-sm bg-waiting opacity-45" /> {formatUsd(last.held_usd)}{' '}
          reserved
        </div>
        {below === 0 ? null : <div className="text-muted">+ {formatUsd(below)} in runs it started</div>}
      </div>
      <svg
        role="img"
        aria-label={`Money in time: ${words}, at most ${formatUsd(most)} at once`}
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        height={height}
        className="block min-w-0 flex-1 overflow-hidden border-b border-line"
      >
        <path d={held} className="fill-waiting opacity-45" />
        <path d={spent} className="fill-accent" />
      </svg>
      <span className="figure w-24 shrink-0 self-start px-3 text-right text-muted" title="most at once">
        {formatUsd(most)}
      </span>
    </div>
  );
}
