import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { bulkActionsQuery } from '../../api/access.ts';
import { nameKeys, useKeys } from '../../api/key-names.ts';
import { Moment } from '../../shared/ago.tsx';
import { Dialog } from '../../shared/dialog.tsx';
import { linkClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { toBulkAction } from './history-model.ts';

const mostLinks = 5;

/** What was done to several runs at once, by whom, newest first. */
export function BulkHistory({ onClose }: { readonly onClose: () => void }): ReactElement {
  const query = useQuery(bulkActionsQuery());
  const nameOf = nameKeys(useKeys());
  return (
    <Dialog title="Actions on several runs" onClose={onClose}>
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="text-sm text-muted">
              Nothing yet. Runs that are cancelled, repeated or raised together are listed here.
            </p>
          ) : (
            <ul className="flex flex-col divide-y divide-line text-sm">
              {items.map((entry) => {
                const { title, filter, request, runs } = toBulkAction(entry);
                return (
                  <li key={entry.entry_id} className="flex flex-col gap-0.5 py-2">
                    <span className="font-medium">{title}</span>
                    <span className="text-xs text-muted">
                      {nameOf(entry.actor) ?? entry.actor}, <Moment at={entry.at} />
                      {filter === '' ? '' : `; filter ${filter}`}
                      {request === '' ? '' : `; ${request}`}
                    </span>
                    <span className="flex flex-wrap gap-x-2 font-mono text-xs">
                      {runs.slice(0, mostLinks).map((runId) => (
                        <Link key={runId} to="/runs/$runId" params={{ runId }} className={linkClass}>
                          …{runId.slice(-8)}
                        </Link>
                      ))}
                      {runs.length > mostLinks ? (
                        <span className="text-muted">and {runs.length - mostLinks} more</span>
                      ) : null}
                    </span>
                  </li>
                );
              })}
            </ul>
          )
        }
      </QueryView>
    </Dialog>
  );
}
