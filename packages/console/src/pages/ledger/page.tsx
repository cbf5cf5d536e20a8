import type { LedgerEntry } from '@capstan/core/contracts/money';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { ledgerQuery, toLedgerPath } from '../../api/money.ts';
import { readProject } from '../../api/project.ts';
import { Held } from '../../decision/held.tsx';
import { shortEndpoint } from '../../decision/lanes-model.ts';
import { Moment } from '../../shared/ago.tsx';
import { CursorPager } from '../../shared/cursor-pager.tsx';
import { formatUsd } from '../../shared/format.ts';
import { Icon } from '../../shared/icon.tsx';
import { EmptyState, fieldClass, linkClass, PageHead, Panel, tableClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

const kindWords = {
  reserve: 'reserved',
  settle: 'settled',
  release: 'released',
  adjust: 'corrected',
} as const;

function toCsvAddress(search: Parameters<typeof toLedgerPath>[0]): string {
  const project = readProject();
  return toLedgerPath(search, { format: 'csv', ...(project === null ? {} : { project_id: project }) });
}

/** Every reservation and settlement, newest first; entries are immutable. */
export function LedgerPage(): ReactElement {
  const search = useSearch({ from: '/costs/ledger' });
  const navigate = useNavigate({ from: '/costs/ledger' });
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const query = useQuery(ledgerQuery(search, cursors.at(-1) ?? ''));
  const change = (part: Partial<typeof search>): void => {
    setCursors([]);
    void navigate({ search: (known) => ({ ...known, ...part }), replace: true });
  };
  return (
    <>
      <p className="text-xs text-muted">
        <Link to="/costs" className="hover:underline">
          Costs
        </Link>
      </p>
      <PageHead
        title="Ledger"
        about="What Capstan reserved before each call, and what the call cost. Entries never change."
        actions={
          <>
            <input
              data-filter
              aria-label="Capability"
              placeholder="Capability"
              className={`${fieldClass} w-36`}
              defaultValue={search.capability ?? ''}
              onBlur={({ target }) => change({ capability: target.value.trim() || undefined })}
            />
            <input
              aria-label="Run"
              placeholder="Run"
              className={`${fieldClass} w-40 font-mono`}
              defaultValue={search.run_id ?? ''}
              onBlur={({ target }) => change({ run_id: target.value.trim() || undefined })}
            />
            <a
              href={toCsvAddress(search)}
              download="ledger.csv"
              className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line bg-surface px-3 text-sm font-medium hover:bg-sunken"
            >
              <Icon name="download" size={15} /> CSV
            </a>
          </>
        }
      />
      <Panel isTight>
        <QueryView query={query}>
          {({ items, next_cursor }) =>
            items.length === 0 ? (
              <EmptyState title="No entries">Calls of free capabilities leave no entry.</EmptyState>
            ) : (
              <>
                <section className="scrolls" tabIndex={0} aria-label="Entries">
                  <Entries entries={items} />
                </section>
                <CursorPager cursors={cursors} nextCursor={next_cursor} onTurn={setCursors} />
              </>
            )
          }
        </QueryView>
      </Panel>
    </>
  );
}

function Entries({ entries }: { readonly entries: readonly LedgerEntry[] }): ReactElement {
  return (
    <table className={tableClass}>
      <thead>
        <tr>
          <th>At</th>
          <th>What</th>
          <th className="text-right!">Amount</th>
          <th className="max-sm:hidden">Capability</th>
          <th className="max-sm:hidden">Instance</th>
          <th>Step</th>
        </tr>
      </thead>
      <tbody>
        {entries.map(
          ({
            entry_id,
            at,
            kind,
            amount_usd,
            overrun_usd,
            held_usd,
            pieces,
            certainty,
            capability,
            endpoint,
            run_id,
            step_id,
          }) => (
            <tr key={entry_id}>
              <td className="text-muted">
                <Moment at={at} />
              </td>
              <td className="whitespace-nowrap">
                {kindWords[kind]}
                {certainty === 'estimated' ? <span className="text-waiting"> (estimated)</span> : ''}
                {overrun_usd === undefined ? (
                  ''
                ) : (
                  <span className="text-waiting"> ({formatUsd(overrun_usd)} above its worst case)</span>
                )}
              </td>
              <td className="figure text-right!">
                <Held usd={amount_usd} held={{ held_usd, pieces }} />
              </td>
              <td className="max-sm:hidden">{capability}</td>
              <td className="font-mono text-xs text-muted max-sm:hidden">
                {endpoint === undefined ? '' : shortEndpoint(endpoint)}
              </td>
              <td>
                {run_id === undefined ? (
                  <span className="text-muted">
                    {endpoint === undefined ? 'a call that has been deleted' : 'a direct call'}
                  </span>
                ) : (
                  <Link
                    to="/runs/$runId"
                    params={{ runId: run_id }}
                    search={{ step: step_id, tab: 'money' }}
                    className={linkClass}
                  >
                    {step_id ?? run_id}
                  </Link>
                )}
              </td>
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}
