import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { eventsQuery } from '../../api/runs.ts';
import { QueryView } from '../../shared/query-view.tsx';
import { LogView } from './log-view.tsx';
import type { RunViewProps } from './run-view-props.ts';

export function LogTab({ run, search, onSearch }: RunViewProps): ReactElement {
  const query = useQuery({
    ...eventsQuery(run.run_id),
    refetchInterval: run.finished_at === null ? 5_000 : false,
  });
  const until = search.at === undefined ? Number.POSITIVE_INFINITY : Date.parse(search.at);
  return (
    <QueryView query={query}>
      {(events) => (
        <LogView
          events={events.filter((event) => Date.parse(event.at) <= until)}
          name={run.run_id}
          selected={search.step}
          onSelect={(step) => onSearch({ step, item: undefined })}
        />
      )}
    </QueryView>
  );
}
