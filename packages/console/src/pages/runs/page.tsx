import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, Suspense, useState } from 'react';
import { runCountQuery, runsQuery } from '../../api/runs.ts';
import { usePolling } from '../../live/live.tsx';
import { type RunsSearch, readPages, writePages } from '../../searches.ts';
import { CursorPager } from '../../shared/cursor-pager.tsx';
import { latePart } from '../../shared/late-part.tsx';
import { Button, EmptyState, PageHead, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { BulkBar, type ChosenRuns } from './bulk-bar.tsx';
import { RunFilters } from './filters.tsx';
import { ColumnMenu, type ColumnMenuProps, ViewMenu } from './list-choices.tsx';
import { describePlace } from './model.ts';
import { RunTable } from './run-table.tsx';
import { RunsChart } from './runs-chart.tsx';
import { keepColumns, readColumns } from './views.ts';

const BulkHistory = latePart(() => import('./bulk-history.tsx'), 'BulkHistory');

const nothing: ReadonlySet<string> = new Set();

/** Describes the rows of a page among all; empty for a search, whose runs are not counted. */
function usePlace(
  search: RunsSearch,
  page: number,
  nextCursor: string | null | undefined,
): (shown: number) => string {
  // A page of a search may be short without being the last.
  const isSearch = search.q !== undefined;
  const isLong = page > 0 || typeof nextCursor === 'string';
  const counted = useQuery({ ...runCountQuery(search), enabled: isLong && !isSearch });
  return (shown) =>
    isSearch ? '' : describePlace({ page, shown, all: isLong ? counted.data?.count : shown });
}

export function RunsPage(): ReactElement {
  const { after, ...search } = useSearch({ from: '/runs' });
  const navigate = useNavigate({ from: '/runs' });
  const cursors = readPages({ after });
  const [chosen, setChosen] = useState<ChosenRuns>(nothing);
  const [columns, setColumns] = useState(readColumns);
  const query = useQuery({
    ...runsQuery(search, cursors.at(-1)),
    refetchInterval: usePolling(),
    // During typing, the rows of the former search stay.
    placeholderData: (known) => known,
  });
  const isFiltered = Object.values(search).some((value) => value !== undefined);
  const change = (part: Partial<typeof search>): void => {
    if (chosen === 'matching') setChosen(nothing);
    void navigate({ search: (known) => ({ ...known, ...part, after: undefined }), replace: true });
  };
  const turn = (pages: readonly string[]): void => {
    void navigate({ search: (known) => ({ ...known, ...writePages(pages) }) });
    scrollTo(0, 0);
  };
  const placeOf = usePlace(search, cursors.length, query.data?.next_cursor);
  return (
    <>
      <PageHead
        title="Runs"
        actions={
          <Link to="/pipelines" className="text-sm text-accent hover:underline">
            Start one from a pipeline
          </Link>
        }
      />
      <RunsChart search={search} onChange={change} />
      <div className="flex flex-wrap items-start justify-between gap-x-2">
        <RunFilters search={search} onChange={change} />
        <ListTools
          search={search}
          columns={columns}
          onColumns={setColumns}
          {...(isFiltered ? { onAll: () => setChosen('matching') } : {})}
        />
      </div>
      <BulkBar chosen={chosen} filter={search} onDone={() => setChosen(nothing)} />
      <Panel isTight>
        <QueryView query={query}>
          {({ items, next_cursor }) =>
            items.length === 0 && next_cursor === null && cursors.length === 0 ? (
              <NoRuns isFiltered={isFiltered} />
            ) : (
              <>
                {items.length === 0 ? (
                  <EmptyState title="None among these runs">
                    A page of a search looks at 10,000 runs.
                  </EmptyState>
                ) : (
                  <RunTable
                    runs={items}
                    columns={columns}
                    chosen={chosen === 'matching' ? nothing : chosen}
                    onChoose={setChosen}
                  />
                )}
                <CursorPager
                  cursors={cursors}
                  nextCursor={next_cursor}
                  place={placeOf(items.length)}
                  onTurn={turn}
                />
              </>
            )
          }
        </QueryView>
      </Panel>
    </>
  );
}

interface ListToolsProps {
  readonly search: RunsSearch;
  readonly columns: ColumnMenuProps['columns'];
  readonly onColumns: ColumnMenuProps['onChange'];
  /** Absent without filters. */
  readonly onAll?: () => void;
}

function ListTools({ search, columns, onColumns, onAll }: ListToolsProps): ReactElement {
  const [isHistory, setHistory] = useState(false);
  return (
    <div className="mb-3 flex">
      {onAll === undefined ? null : (
        <Button look="bare" onClick={onAll}>
          All that match …
        </Button>
      )}
      <Button look="bare" onClick={() => setHistory(true)}>
        History
      </Button>
      <Suspense>{isHistory ? <BulkHistory onClose={() => setHistory(false)} /> : null}</Suspense>
      <ViewMenu search={search} />
      <ColumnMenu
        columns={columns}
        onChange={(next) => {
          keepColumns(next);
          onColumns(next);
        }}
      />
    </div>
  );
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }): ReactElement {
  if (isFiltered) {
    return (
      <EmptyState title="No matches">
        No run matches these filters.{' '}
        <Link to="/runs" search={{}} className="text-accent hover:underline">
          Show all
        </Link>
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No runs yet" command="node bin/capstan.mjs run pipeline.yaml --job job.json --watch">
      A run is one execution of a pipeline for a job. Each shows here with what it does, what it waits for and
      what it costs. Start one from a pipeline, write one in the{' '}
      <Link
        to="/pipelines/$name/edit"
        params={{ name: 'new' }}
        search={{ example: true }}
        className="text-accent hover:underline"
      >
        editor
      </Link>
      , or by one command:
    </EmptyState>
  );
}
