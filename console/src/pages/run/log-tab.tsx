import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { eventsQuery } from '../../api/runs.ts';
import { FilterField } from '../../shared/filter-field.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { EventList } from './event-list.tsx';
import { matchesText } from './log-model.ts';
import type { RunViewProps } from './run-view-props.ts';

export function LogTab({ run, search, onSearch }: RunViewProps): ReactElement {
  const query = useQuery({
    ...eventsQuery(run.run_id),
    refetchInterval: run.finished_at === null ? 5_000 : false,
  });
  const [text, setText] = useState('');
  const until = search.at === undefined ? Number.POSITIVE_INFINITY : Date.parse(search.at);
  return (
    <QueryView query={query}>
      {(events) => {
        const shown = events.filter((event) => Date.parse(event.at) <= until && matchesText(event, text));
        return (
          <>
            <div className="mb-2 flex items-center gap-3">
              <FilterField label="Filter the log" value={text} onChange={setText} />
              <span className="figure text-sm text-muted">
                {shown.length} of {events.length} lines
              </span>
            </div>
            <EventList
              events={shown}
              selected={search.step}
              onSelect={(step) => onSearch({ step, item: undefined })}
            />
          </>
        );
      }}
    </QueryView>
  );
}
