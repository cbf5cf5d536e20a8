/** What was spent in the chosen days: the sum, a chart over time, and a row for each group, which lead to the calls. */

import type { CostSeries } from '@capstan/core/contracts/money';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { costSeriesQuery, costsQuery, toCostSeriesPath } from '../../api/money.ts';
import { readProject } from '../../api/project.ts';
import { usePolling } from '../../live/live.tsx';
import type { CostsSearch } from '../../searches.ts';
import { formatUsd } from '../../shared/format.ts';
import { Icon } from '../../shared/icon.tsx';
import { Button, buttonClass, linkClass, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { CostChart } from './cost-chart.tsx';
import {
  type AskedGroups,
  type CostRow,
  describeEnd,
  describeSaved,
  describeSpan,
  formatCount,
  nameGrouping,
  spanOf,
  toRows,
} from './model.ts';

export interface SpendingProps {
  readonly search: CostsSearch;
  readonly groups: AskedGroups;
}

/** Many days have many calls, and change little. */
const manyDaysMs = 60_000;

export function Spending({ search, groups }: SpendingProps): ReactElement {
  const polling = usePolling() || 10_000;
  const refetchInterval = search.period === 'day' ? polling : Math.max(polling, manyDaysMs);
  const asked = { ...spanOf(search), by: groups.by, ...(groups.and === null ? {} : { and: groups.and }) };
  const series = useQuery({ ...costSeriesQuery(asked), refetchInterval, retry: false });
  return (
    <Panel
      title={<>Spent {describeSpan(search)}</>}
      actions={
        <span className="flex flex-wrap items-center gap-x-3">
          <Facts search={search} />
          {series.data === undefined ? null : <Sum costs={series.data} />}
          <CsvLink asked={asked} />
        </span>
      }
    >
      {series.error === null ? null : <ProblemView error={series.error} />}
      {series.data === undefined ? null : <Groups costs={series.data} groups={groups} />}
    </Panel>
  );
}

function Facts({ search }: Pick<SpendingProps, 'search'>): ReactElement {
  const costs = useQuery({ ...costsQuery(spanOf(search)), refetchInterval: usePolling() || 10_000 }).data;
  const facts = costs === undefined ? [] : [describeEnd(costs), describeSaved(costs)];
  return (
    <>
      {facts.map((fact) =>
        fact === null ? null : (
          <span key={fact} className="figure text-sm text-muted">
            {fact}
          </span>
        ),
      )}
    </>
  );
}

function Sum({ costs: { usd, calls, tokens } }: { readonly costs: CostSeries }): ReactElement {
  return (
    <span className="figure text-sm">
      <span className="font-semibold">{formatUsd(usd)}</span>, {formatCount(calls)} calls
      {tokens === 0 ? '' : `, ${formatCount(tokens)} tokens`}
    </span>
  );
}

function CsvLink({ asked }: { readonly asked: Readonly<Record<string, string>> }): ReactElement {
  const project = readProject();
  const more = { format: 'csv', ...(project === null ? {} : { project_id: project }) };
  return (
    <a href={toCostSeriesPath({ ...asked, ...more })} download="costs.csv" className={buttonClass('plain')}>
      <Icon name="download" size={15} /> CSV
    </a>
  );
}

const fewRows = 12;

interface GroupsProps {
  readonly costs: CostSeries;
  readonly groups: AskedGroups;
}

function Groups({ costs, groups }: GroupsProps): ReactElement {
  const [isWhole, setWhole] = useState(false);
  const rows = toRows(costs, groups);
  const by = [groups.by, ...(groups.and === null ? [] : [groups.and])].map(nameGrouping).join(' × ');
  if (rows.length === 0) return <p className="text-sm text-muted">No calls in these days.</p>;
  const shown = isWhole ? rows : rows.slice(0, fewRows);
  const hasTokens = costs.tokens > 0;
  return (
    <>
      <CostChart costs={costs} rows={rows} by={by} />
      <table className={`${tableClass} mt-3`}>
        <thead>
          <tr>
            <th>{by}</th>
            <th className="text-right!">Calls</th>
            {hasTokens ? <th className="text-right! max-sm:hidden">Tokens</th> : null}
            <th className="text-right!">Cost</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <GroupRow key={row.key} row={row} hasTokens={hasTokens} />
          ))}
        </tbody>
      </table>
      {shown.length === rows.length ? null : (
        <Button look="bare" className="mt-2" onClick={() => setWhole(true)}>
          All {rows.length}
        </Button>
      )}
    </>
  );
}

function GroupRow({ row, hasTokens }: { readonly row: CostRow; readonly hasTokens: boolean }): ReactElement {
  const { names, ids, dot, usd, calls, tokens, address } = row;
  const name = names.join(' × ');
  return (
    <tr>
      <td>
        <span className={`mr-2 inline-block size-2 rounded-full ${dot}`} />
        {address === null ? (
          <span title={ids}>{name}</span>
        ) : (
          <Link to="/calls" search={address} title={`Calls of ${ids}`} className={linkClass}>
            {name}
          </Link>
        )}
      </td>
      <td className="figure text-right!">{formatCount(calls)}</td>
      {hasTokens ? <td className="figure text-right! max-sm:hidden">{formatCount(tokens)}</td> : null}
      <td className="figure text-right!">{formatUsd(usd)}</td>
    </tr>
  );
}
