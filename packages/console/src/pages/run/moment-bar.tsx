import type { RunEvent } from '@capstan/core/contracts/event';
import type { Run } from '@capstan/core/contracts/run';
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useEffect, useRef, useState } from 'react';
import { eventsQuery } from '../../api/runs.ts';
import { formatClock } from '../../shared/format.ts';
import { Button } from '../../shared/parts.tsx';

const playMs = 12_000;
const frameMs = 100;

export interface MomentBarProps {
  readonly run: Run;
  readonly at: string | undefined;
  readonly onMove: (at: string | undefined) => void;
}

/** The run at any past moment: the slider moves over its log, and play replays it. */
export function MomentBar({ run, at, onMove }: MomentBarProps): ReactElement {
  const events = useQuery({ ...eventsQuery(run.run_id), enabled: at !== undefined });
  if (at === undefined) {
    return (
      <Button
        look="bare"
        icon="play"
        onClick={() => onMove(run.created_at)}
        disabled={run.started_at === null}
      >
        Time travel
      </Button>
    );
  }
  return (
    <div className="flex flex-wrap items-center gap-2">
      {events.data === undefined ? (
        <span className="text-sm text-muted">Reading the log …</span>
      ) : (
        <Slider events={events.data} at={at} onMove={onMove} />
      )}
      <Button look="bare" onClick={() => onMove(undefined)}>
        Back to now
      </Button>
    </div>
  );
}

function Slider({
  events,
  at,
  onMove,
}: Omit<MomentBarProps, 'run' | 'at'> & {
  readonly events: readonly RunEvent[];
  readonly at: string;
}): ReactElement {
  const [isPlaying, setPlaying] = useState(false);
  const first = Date.parse(events[0]?.at ?? at);
  const last = Math.max(first + 1, Date.parse(events.at(-1)?.at ?? at));
  const place = useRef(Date.parse(at));
  place.current = Date.parse(at);
  const move = useRef(onMove);
  move.current = onMove;
  useEffect(() => {
    if (!isPlaying) return;
    const timer = setInterval(() => {
      const next = place.current + ((last - first) * frameMs) / playMs;
      move.current(new Date(Math.min(next, last)).toISOString());
      if (next >= last) setPlaying(false);
    }, frameMs);
    return () => clearInterval(timer);
  }, [isPlaying, first, last]);
  return (
    <>
      <Button look="bare" icon={isPlaying ? 'pause' : 'play'} onClick={() => setPlaying(!isPlaying)}>
        {isPlaying ? 'Stop' : 'Play'}
      </Button>
      <input
        type="range"
        aria-label="Moment of the run"
        aria-valuetext={formatClock(at)}
        min={first}
        max={last}
        step="1"
        value={Math.min(last, Math.max(first, Date.parse(at)))}
        onChange={({ target }) => onMove(new Date(Number(target.value)).toISOString())}
        className="w-40 accent-accent"
      />
      <span className="figure text-xs text-muted">{formatClock(at)}</span>
    </>
  );
}
