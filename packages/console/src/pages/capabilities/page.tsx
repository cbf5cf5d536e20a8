import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { callsSummaryQuery, capabilitiesQuery } from '../../api/capabilities.ts';
import { callsHealthQuery } from '../../api/health.ts';
import { usePolling } from '../../live/live.tsx';
import { FilterField, NothingMatches } from '../../shared/filter-field.tsx';
import { EmptyState, linkClass, PageHead, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { FleetTable } from './fleet-table.tsx';
import { HostPanel } from './host-table.tsx';
import { toFleetRows } from './model.ts';

/** The fleet: a row for each capability, those with problems first. */
export function CapabilitiesPage(): ReactElement {
  const query = useQuery({ ...capabilitiesQuery(), refetchInterval: usePolling() || 15_000 });
  const calls = useQuery({ ...callsSummaryQuery(), refetchInterval: 30_000 }).data;
  const health = useQuery(callsHealthQuery()).data?.items ?? [];
  const [text, setText] = useState('');
  return (
    <>
      <PageHead
        title="Capabilities"
        about="What steps can call, with its instances and recent calls. Problems come first."
        actions={
          <>
            <Link to="/aliases" className={`${linkClass} px-2 text-sm`}>
              Aliases
            </Link>
            <Link to="/cache" className={`${linkClass} px-2 text-sm`}>
              Cache
            </Link>
            <FilterField label="Filter capabilities" value={text} onChange={setText} />
          </>
        }
      />
      <QueryView query={query}>
        {({ items }) => {
          const shown = items.filter(({ name }) => name.includes(text));
          if (shown.length === 0 && text !== '') return <NothingMatches text={text} />;
          if (shown.length === 0) {
            return (
              <EmptyState
                title="No instances registered"
                command="node bin/capstan.mjs capability start capabilities/concat"
              >
                A capability is a program that answers <code>/spec</code>, <code>/health</code> and{' '}
                <code>/exec</code>. When one registers, it appears here with its state, speed and price.
              </EmptyState>
            );
          }
          return (
            <>
              <Panel isTight>
                <FleetTable rows={toFleetRows(shown, calls, health)} />
              </Panel>
              <HostPanel />
            </>
          );
        }}
      </QueryView>
    </>
  );
}
