import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { runsQuery } from '../../api/runs.ts';
import { usePolling } from '../../live/live.tsx';
import { linkClass, Panel } from '../../shared/parts.tsx';
import { useNow } from '../../shared/use-now.ts';
import { RunLine } from './run-line.tsx';

const dayMs = 86_400_000;
const mostShown = 5;

/** Empty when no run failed. */
export function FailedLately(): ReactElement | null {
  // Whole hours keep the query key stable for some time.
  const since = new Date(Math.floor(useNow() / 3_600_000) * 3_600_000 - dayMs).toISOString();
  const filter = { state: 'failed', since } as const;
  const { data } = useQuery({ ...runsQuery(filter), refetchInterval: usePolling() });
  if (data === undefined || data.items.length === 0) return null;
  const { items, next_cursor } = data;
  const count = next_cursor === null ? String(items.length) : `More than ${items.length}`;
  return (
    <Panel
      title={`${count} failed in the last 24 h`}
      isTight
      actions={
        <Link to="/runs" search={filter} className={`${linkClass} text-sm`}>
          All failed
        </Link>
      }
    >
      <ul aria-label="Failed in the last 24 h" className="divide-y divide-line">
        {items.slice(0, mostShown).map((run) => (
          <RunLine key={run.run_id} run={run} at={run.finished_at ?? run.created_at} />
        ))}
      </ul>
    </Panel>
  );
}
