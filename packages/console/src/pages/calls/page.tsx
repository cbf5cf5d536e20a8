import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { callsQuery } from '../../api/calls.ts';
import { readProject } from '../../api/project.ts';
import { CallTable } from '../../calls/call-table.tsx';
import { toCallsPath } from '../../calls/calls-path.ts';
import { type CallsSearch, readPages, writePages } from '../../searches.ts';
import { CursorPager } from '../../shared/cursor-pager.tsx';
import { Icon } from '../../shared/icon.tsx';
import { buttonClass, EmptyState, PageHead, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { useProject } from '../../shared/use-project.ts';
import { CallFilters } from './filters.tsx';

function toCsvAddress(search: CallsSearch): string {
  const project = readProject();
  return toCallsPath(search, { format: 'csv', ...(project === null ? {} : { project_id: project }) });
}

/** Every call of the project, newest first; the filters are in the address. */
export function CallsPage(): ReactElement {
  const { after, ...search } = useSearch({ from: '/calls' });
  const navigate = useNavigate({ from: '/calls' });
  const cursors = readPages({ after });
  const query = useQuery(callsQuery(search, cursors.at(-1) ?? ''));
  return (
    <>
      <PageHead
        title="Calls"
        about="Every call, direct or of a run: who pays, the model and its tokens, the cost and the end."
        actions={
          <a href={toCsvAddress(search)} download="calls.csv" className={buttonClass('plain')}>
            <Icon name="download" size={15} /> CSV
          </a>
        }
      />
      <CallFilters
        search={search}
        onChange={(part) => void navigate({ search: { ...search, ...part }, replace: true })}
        onClear={() => void navigate({ search: {}, replace: true })}
      />
      <ContentHint />
      <Panel isTight>
        <QueryView query={query}>
          {({ items, next_cursor }) =>
            items.length === 0 ? (
              <EmptyState title="No calls">
                A call of a capability or a model shows here when it begins, with its cost when it ends.
              </EmptyState>
            ) : (
              <>
                <section className="scrolls" tabIndex={0} aria-label="Calls">
                  <CallTable calls={items} />
                </section>
                <CursorPager
                  cursors={cursors}
                  nextCursor={next_cursor}
                  onTurn={(pages) => void navigate({ search: { ...search, ...writePages(pages) } })}
                />
              </>
            )
          }
        </QueryView>
      </Panel>
    </>
  );
}

/** For those who may switch contents on, while they are off. */
function ContentHint(): ReactElement | null {
  const project = useProject();
  if (project === undefined || project.content_days !== null) return null;
  return (
    <p className="mb-3 text-sm text-muted">
      What is sent and answered is not kept.{' '}
      <Link to="/settings" search={{ tab: 'projects' }} className="underline">
        Keep contents for some days
      </Link>{' '}
      to see calls as conversations.
    </p>
  );
}
