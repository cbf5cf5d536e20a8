import type { Instance } from '@capstan/core/contracts/capability';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { readProject } from '../api/project.ts';
import { shortEndpoint } from '../decision/lanes-model.ts';
import { describeMedian, describeShare, type InstanceHealth, marksOfCalls } from '../health/health-model.ts';
import { ResultMarks } from '../health/result-marks.tsx';
import { StateMark } from '../shared/state-mark.tsx';
import { useNow } from '../shared/use-now.ts';
import {
  describeOverruns,
  describePrice,
  describeSharing,
  describeSpeed,
  describeSuccess,
  heartbeatLeft,
  whatIsWrong,
} from './instance-model.ts';

export interface InstanceTileProps {
  readonly instance: Instance;
  /** Undefined without a call of the project. */
  readonly health?: InstanceHealth | undefined;
}

const mostDots = 24;

/** One instance: state, slots, queue, speed, price, breaker, and the time to the next heartbeat below. */
export function InstanceTile({ instance, health }: InstanceTileProps): ReactElement {
  const now = useNow();
  const wrong = whatIsWrong(instance, now);
  const overruns = describeOverruns(instance);
  const left = heartbeatLeft(instance, now);
  const sharing = describeSharing(instance, readProject());
  // Older calls have less weight.
  const { succeeded, failed } = instance.recent_calls;
  return (
    <Link
      to="/capabilities/$name"
      params={{ name: instance.name }}
      search={{ instance: instance.endpoint }}
      className="relative flex flex-col gap-1.5 overflow-hidden rounded-lg px-3.5 pb-3 pt-2.5 text-sm hover:bg-sunken/60"
    >
      <span className="flex items-center justify-between gap-2">
        <span className="min-w-0 truncate font-mono text-xs font-medium">
          {shortEndpoint(instance.endpoint)}
        </span>
        <StateMark state={instance.state} />
      </span>
      <Slots instance={instance} />
      <span className="figure flex flex-wrap justify-between gap-x-3 text-xs text-muted">
        <span>{describeSpeed(instance)}</span>
        <span>{describePrice(instance)}</span>
      </span>
      {health === undefined ? null : <LastCalls health={health} />}
      <span className="figure flex flex-wrap justify-between gap-x-3 text-xs text-muted">
        {health === undefined ? (
          <span>{describeSuccess(Math.round(succeeded), Math.round(succeeded + failed))}</span>
        ) : null}
        <span className="truncate">{[instance.version, ...instance.tags].join(' · ')}</span>
      </span>
      {instance.host === undefined ? null : (
        <span className="text-xs text-muted">shares the slots of {instance.host.name}</span>
      )}
      {instance.resident === undefined ? null : (
        <span className="truncate text-xs text-muted" title={instance.resident.join('\n')}>
          has loaded {instance.resident.join(', ')}
        </span>
      )}
      {sharing === null ? null : <span className="text-xs text-muted">{sharing}</span>}
      {wrong === null ? null : <span className="text-xs text-waiting">{wrong}</span>}
      {overruns === null ? null : <span className="text-xs text-waiting">{overruns}</span>}
      <span className="absolute inset-x-0 bottom-0 h-0.5 bg-quiet-soft" title="Until its heartbeat is late">
        <span
          className={`block h-full ${left < 0.2 ? 'bg-waiting' : 'bg-done/60'}`}
          style={{ width: `${left * 100}%` }}
        />
      </span>
    </Link>
  );
}

function LastCalls({ health }: { readonly health: InstanceHealth }): ReactElement {
  return (
    <span className="figure flex flex-wrap items-center justify-between gap-x-3 text-xs text-muted">
      <ResultMarks label="Last calls" marks={marksOfCalls(health.last)} />
      <span>{describeShare(health, 'call')}</span>
      <span title="Median time and cost of the last calls">{describeMedian(health)}</span>
    </span>
  );
}

function Slots({
  instance: { in_flight, max_concurrency, queue_depth },
}: {
  readonly instance: Instance;
}): ReactElement {
  const shown = Math.min(mostDots, max_concurrency);
  return (
    <span className="flex items-center gap-2">
      <span className="flex flex-1 gap-0.5" aria-hidden="true">
        {Array.from({ length: shown }, (_, slot) => (
          <span
            key={slot}
            className={`h-2 min-w-0 max-w-4 flex-1 rounded-sm ${slot < in_flight ? 'bg-running' : 'bg-quiet-soft'}`}
          />
        ))}
      </span>
      <span className="figure shrink-0 text-xs">
        {in_flight} of {max_concurrency}
        {queue_depth === null || queue_depth === 0 ? '' : `, ${queue_depth} in line`}
      </span>
    </span>
  );
}
