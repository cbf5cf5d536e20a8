import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { runsQuery } from '../../api/runs.ts';
import { usePolling } from '../../live/live.tsx';
import { Panel } from '../../shared/parts.tsx';
import { RunLine } from './run-line.tsx';

const mostShown = 3;

/** The runs that have been open for longest; empty when there are none. */
export function OpenLongest(): ReactElement | null {
  const filter = { state: 'running', order: 'oldest' } as const;
  const { data } = useQuery({ ...runsQuery(filter), refetchInterval: usePolling() });
  const open = data?.items.filter(({ finished_at }) => finished_at === null) ?? [];
  if (open.length === 0) return null;
  return (
    <Panel title="Open the longest" isTight>
      <ul aria-label="Open the longest" className="divide-y divide-line">
        {open.slice(0, mostShown).map((run) => (
          <RunLine key={run.run_id} run={run} at={run.started_at ?? run.created_at} />
        ))}
      </ul>
    </Panel>
  );
}
