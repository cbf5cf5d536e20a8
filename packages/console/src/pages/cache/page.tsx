import type { CachedOfCapability, CacheEntry } from '@capstan/core/contracts/cache';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { type CacheChoice, cachedQuery, cacheSummaryQuery, forgetCached } from '../../api/cache.ts';
import { readPages, writePages } from '../../searches.ts';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton, type ConfirmQuestion } from '../../shared/confirm-button.tsx';
import { CursorPager } from '../../shared/cursor-pager.tsx';
import { formatBytes, formatUsd } from '../../shared/format.ts';
import { EmptyState, linkClass, PageHead, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { describeCached, sumCached } from './model.ts';

type Forget = (which: CacheChoice) => void;

function questionOf(what: string, title: string): ConfirmQuestion {
  return {
    title,
    about: <p>The next equal call is made, and costs what it costs. Steps that used {what} keep it.</p>,
    confirm: 'Delete',
    keep: 'Keep',
  };
}

/** What the cache has by capability, what that saved, and each result of a step. */
export function CachePage(): ReactElement {
  const { capability } = useSearch({ from: '/cache' });
  const queries = useQueryClient();
  const summary = useQuery(cacheSummaryQuery());
  const forget = useMutation({
    mutationFn: forgetCached,
    onSettled: () => queries.invalidateQueries({ queryKey: ['cache'] }),
  });
  const total = sumCached(summary.data?.items ?? []);
  const isEmpty = total.results + total.answers === 0;
  return (
    <>
      <PageHead
        title="Cache"
        about={`It has ${describeCached(total)}. In 30 days, ${total.hits} ${
          total.hits === 1 ? 'call' : 'calls'
        } took one, which saved ${formatUsd(total.saved_usd)}.`}
        actions={
          isEmpty ? null : (
            <ConfirmButton
              question={questionOf('a result', 'Delete all results and answers of this project?')}
              onConfirm={() => forget.mutate({})}
            >
              Delete all …
            </ConfirmButton>
          )
        }
      />
      {forget.error === null ? null : <ProblemView error={forget.error} />}
      {forget.data === undefined ? null : (
        <p role="status" className="mb-3 text-sm text-muted">
          {forget.data.removed} deleted.
        </p>
      )}
      <div className="flex flex-col gap-4">
        <Panel title="By capability" isTight>
          <QueryView query={summary}>
            {({ items }) =>
              items.length === 0 ? (
                <EmptyState title="Nothing in the cache">
                  A step with <code>cache</code>, or a direct call with a cache wish, leaves its result here
                  for equal calls.
                </EmptyState>
              ) : (
                <SummaryTable items={items} onForget={forget.mutate} />
              )
            }
          </QueryView>
        </Panel>
        <Results capability={capability} onForget={forget.mutate} />
      </div>
    </>
  );
}

interface SummaryTableProps {
  readonly items: readonly CachedOfCapability[];
  readonly onForget: Forget;
}

function SummaryTable({ items, onForget }: SummaryTableProps): ReactElement {
  return (
    <section className="scrolls" tabIndex={0} aria-label="Cache by capability">
      <table className={tableClass}>
        <thead>
          <tr>
            <th>Capability</th>
            <th>In the cache</th>
            <th className="text-right! max-md:hidden">Size of answers</th>
            <th className="text-right!">Hits</th>
            <th className="text-right!">Saved</th>
            <th className="max-md:hidden">Newest</th>
            <th>
              <span className="sr-only">What to do</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={item.capability}>
              <td>
                <Link to="/cache" search={{ capability: item.capability }} className={linkClass}>
                  {item.capability}
                </Link>
              </td>
              <td>{describeCached(item)}</td>
              <td className="figure text-right! max-md:hidden">
                {item.answers === 0 ? '' : formatBytes(item.answer_bytes)}
              </td>
              <td className="figure text-right!">{item.hits}</td>
              <td className="figure text-right!">{formatUsd(item.saved_usd)}</td>
              <td className="text-muted max-md:hidden">
                {item.stored_at === undefined ? '' : <Ago at={item.stored_at} />}
              </td>
              <td className="text-right!">
                {item.results + item.answers === 0 ? null : (
                  <ConfirmButton
                    question={questionOf('a result', `Delete what the cache has of ${item.capability}?`)}
                    onConfirm={() => onForget({ capability: item.capability })}
                    aria-label={`Delete all of ${item.capability}`}
                  >
                    Delete …
                  </ConfirmButton>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface ResultsProps {
  readonly capability: string | undefined;
  readonly onForget: Forget;
}

/** Answers of direct calls are not listed one by one: only their calls are. */
function Results({ capability, onForget }: ResultsProps): ReactElement | null {
  const { after } = useSearch({ from: '/cache' });
  const navigate = useNavigate({ from: '/cache' });
  const cursors = readPages({ after });
  const query = useQuery(cachedQuery(capability, cursors.at(-1)));
  if (query.data?.items.length === 0 && cursors.length === 0 && capability === undefined) return null;
  return (
    <Panel
      title={capability === undefined ? 'Results of steps' : `Results of steps: ${capability}`}
      isTight
      actions={
        capability === undefined ? null : (
          <Link to="/cache" search={{}} className={`${linkClass} text-sm`}>
            All capabilities
          </Link>
        )
      }
    >
      <QueryView query={query}>
        {({ items, next_cursor }) => (
          <>
            {items.length === 0 ? (
              <p className="p-4 text-sm text-muted">No results of steps</p>
            ) : (
              <ResultTable items={items} onForget={onForget} />
            )}
            <CursorPager
              cursors={cursors}
              nextCursor={next_cursor}
              onTurn={(pages) => void navigate({ search: { capability, ...writePages(pages) } })}
            />
          </>
        )}
      </QueryView>
    </Panel>
  );
}

interface ResultTableProps {
  readonly items: readonly CacheEntry[];
  readonly onForget: Forget;
}

function ResultTable({ items, onForget }: ResultTableProps): ReactElement {
  return (
    <section className="scrolls" tabIndex={0} aria-label="Results of steps">
      <table className={tableClass}>
        <thead>
          <tr>
            <th>Capability</th>
            <th>From</th>
            <th className="text-right! max-sm:hidden">Files</th>
            <th className="text-right!">Each hit saves</th>
            <th className="max-md:hidden">Stored</th>
            <th className="max-md:hidden">Until</th>
            <th>
              <span className="sr-only">What to do</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map((entry) => (
            <tr key={entry.key}>
              <td>{entry.capability}</td>
              <td>
                <Link
                  to="/runs/$runId"
                  params={{ runId: entry.run_id }}
                  search={{ step: entry.step_id, item: entry.item }}
                  className={linkClass}
                >
                  {entry.pipeline} · {entry.step_id}
                </Link>
              </td>
              <td className="figure text-right! max-sm:hidden">{entry.files}</td>
              <td className="figure text-right!">{formatUsd(entry.cost_usd)}</td>
              <td className="text-muted max-md:hidden">
                <Ago at={entry.stored_at} />
              </td>
              <td className="text-muted max-md:hidden">
                <Ago at={entry.expires_at} />
              </td>
              <td className="text-right!">
                <ConfirmButton
                  question={questionOf('it', `Delete the result of ${entry.step_id}?`)}
                  onConfirm={() => onForget({ key: entry.key })}
                  aria-label={`Delete the result of ${entry.step_id}`}
                >
                  Delete …
                </ConfirmButton>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
