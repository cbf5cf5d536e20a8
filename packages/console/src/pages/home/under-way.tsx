import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { runsQuery } from '../../api/runs.ts';
import { usePolling } from '../../live/live.tsx';
import { EmptyState, linkClass, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { RunTable } from '../runs/run-table.tsx';

const mostShown = 8;

/** Open runs, and the last ones that ended. */
export function UnderWay(): ReactElement {
  const query = useQuery({ ...runsQuery({}), refetchInterval: usePolling() });
  return (
    <Panel
      title="Runs"
      isTight
      actions={
        <Link to="/runs" className={`${linkClass} text-sm`}>
          All runs
        </Link>
      }
    >
      <QueryView query={query}>
        {({ items }) => {
          const open = items.filter(({ finished_at }) => finished_at === null);
          const ended = items.filter(({ finished_at }) => finished_at !== null);
          const shown = [...open, ...ended.slice(0, Math.max(3, mostShown - open.length))];
          if (shown.length > 0) return <RunTable runs={shown} isCompact />;
          return (
            <EmptyState title="No runs yet" command="node bin/capstan.mjs demo">
              Write a pipeline in the{' '}
              <Link
                to="/pipelines/$name/edit"
                params={{ name: 'new' }}
                search={{ example: true }}
                className={linkClass}
              >
                editor
              </Link>{' '}
              and try it with mocks, or let one command show it all:
            </EmptyState>
          );
        }}
      </QueryView>
    </Panel>
  );
}
