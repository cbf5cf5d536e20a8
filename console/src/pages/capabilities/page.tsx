import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { capabilitiesQuery } from '../../api/capabilities.ts';
import { InstanceTile } from '../../fleet/instance-tile.tsx';
import { usePolling } from '../../live/live.tsx';
import { FilterField, NothingMatches } from '../../shared/filter-field.tsx';
import { EmptyState, PageHead } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

/** The fleet: every capability with its instances, live. */
export function CapabilitiesPage(): ReactElement {
  const query = useQuery({ ...capabilitiesQuery(), refetchInterval: usePolling() || 15_000 });
  const [text, setText] = useState('');
  return (
    <>
      <PageHead
        title="Capabilities"
        about="What can be called, and who offers it: how many slots are taken, how fast and at which price."
        actions={<FilterField label="Filter capabilities" value={text} onChange={setText} />}
      />
      <QueryView query={query}>
        {({ items }) => {
          const shown = items.filter(({ name }) => name.includes(text));
          if (shown.length === 0 && text !== '') return <NothingMatches text={text} />;
          if (shown.length === 0) {
            return (
              <EmptyState
                title="No instances registered"
                command="npx capstan capability start capabilities/concat"
              >
                A capability is a program that answers <code>/spec</code>, <code>/health</code> and{' '}
                <code>/exec</code>. When one registers, it stands here with its state, speed and price.
              </EmptyState>
            );
          }
          return (
            <div className="flex flex-col gap-6">
              {shown.map(({ name, description, versions, instances }) => (
                <section key={name} aria-label={name}>
                  <div className="mb-2 flex flex-wrap items-baseline gap-x-3">
                    <h2 className="text-lg">
                      <Link
                        to="/capabilities/$name"
                        params={{ name }}
                        className="hover:text-accent hover:underline"
                      >
                        {name}
                      </Link>
                    </h2>
                    <span className="figure text-xs text-muted">{versions.join(', ')}</span>
                    <p className="line-clamp-1 min-w-0 text-sm text-muted">{description}</p>
                  </div>
                  <div className="grid grid-cols-[repeat(auto-fill,minmax(16.5rem,1fr))] gap-3">
                    {instances.map((instance) => (
                      <InstanceTile key={instance.endpoint} instance={instance} />
                    ))}
                  </div>
                  {instances.length === 0 ? (
                    <p className="text-sm text-muted">No instance is registered now.</p>
                  ) : null}
                </section>
              ))}
            </div>
          );
        }}
      </QueryView>
    </>
  );
}
