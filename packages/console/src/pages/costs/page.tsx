import type { Budget, CostPeriod } from '@capstan/core/contracts/money';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, useState } from 'react';
import { nameKeys, useKeys } from '../../api/key-names.ts';
import { budgetsQuery, costSeriesQuery, costsQuery, type Grouping, putBudget } from '../../api/money.ts';
import { LimitBar } from '../../budget/limit-bar.tsx';
import { usePolling } from '../../live/live.tsx';
import { costPeriods, groupings } from '../../searches.ts';
import { formatUsd } from '../../shared/format.ts';
import { Button, fieldClass, linkClass, PageHead, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { CostChart } from './cost-chart.tsx';
import { describeSaved, seriesDots, sumSeries } from './model.ts';
import { ScopedBudgets } from './scoped-budgets.tsx';

const periodWords: Readonly<Record<CostPeriod, string>> = {
  day: 'today',
  yesterday: 'yesterday',
  week: 'this week',
  last_7_days: 'last 7 days',
  month: 'this month',
  last_month: 'last month',
  last_30_days: 'last 30 days',
  all: 'ever',
};

export function CostsPage(): ReactElement {
  const { period = 'week', by = 'capability', label } = useSearch({ from: '/costs' });
  const navigate = useNavigate({ from: '/costs' });
  const budgets = useQuery({ ...budgetsQuery(), refetchInterval: usePolling() });
  return (
    <>
      <PageHead
        title="Costs"
        actions={
          <>
            <select
              aria-label="Period"
              className={fieldClass}
              value={period}
              onChange={({ target }) =>
                void navigate({
                  search: { by, label, period: costPeriods.find((one) => one === target.value) },
                })
              }
            >
              {costPeriods.map((one) => (
                <option key={one} value={one}>
                  {periodWords[one]}
                </option>
              ))}
            </select>
            <select
              aria-label="By"
              className={fieldClass}
              value={by}
              onChange={({ target }) =>
                void navigate({ search: { period, by: groupings.find((one) => one === target.value) } })
              }
            >
              {groupings.map((one) => (
                <option key={one} value={one}>
                  by {one}
                </option>
              ))}
            </select>
            {by === 'label' ? (
              <input
                key={label}
                aria-label="Name of the label"
                placeholder="team"
                className={`${fieldClass} w-28`}
                defaultValue={label ?? ''}
                onKeyDown={({ key, currentTarget }) => {
                  if (key === 'Enter') currentTarget.blur();
                }}
                onBlur={({ target }) =>
                  void navigate({
                    search: { period, by, label: target.value === '' ? undefined : target.value },
                  })
                }
              />
            ) : null}
            <Link to="/costs/ledger" className={`${linkClass} px-1 text-sm`}>
              Ledger
            </Link>
          </>
        }
      />
      <div className="mb-4 grid gap-4 lg:grid-cols-2">
        <QueryView query={budgets}>
          {({ items }) => items.map((budget) => <BudgetPanel key={budget.scope} budget={budget} />)}
        </QueryView>
      </div>
      <div className="mb-4">
        <ScopedBudgets />
      </div>
      {by === 'label' && label === undefined ? (
        <p className="text-sm text-muted">Type the name of a label above, such as team, and press Enter.</p>
      ) : (
        <Spending period={period} by={by === 'label' ? `label:${label ?? ''}` : by} />
      )}
    </>
  );
}

function BudgetPanel({ budget }: { readonly budget: Budget }): ReactElement {
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const put = useMutation({
    mutationFn: (usd: number) => putBudget(budget.scope, usd),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['budgets'] });
      setOpen(false);
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    put.mutate(Number(new FormData(event.currentTarget).get('usd') ?? 0));
  };
  return (
    <Panel
      title={budget.scope === 'project' ? 'Today, this project' : 'Today, all projects'}
      actions={
        <Button look="bare" onClick={() => setOpen(!isOpen)}>
          Limit
        </Button>
      }
    >
      <LimitBar budget={budget} />
      {isOpen ? (
        <form
          onSubmit={submit}
          className="mt-3 flex flex-wrap items-center gap-2 border-t border-line pt-3 text-sm"
        >
          <label className="flex items-center gap-2">
            Daily limit (USD, 0 = none)
            <input
              name="usd"
              type="number"
              min="0"
              step="any"
              defaultValue={budget.daily_limit_usd}
              className={`${fieldClass} w-28`}
            />
          </label>
          <Button type="submit" look="primary" disabled={put.isPending}>
            Set
          </Button>
          {put.error === null ? null : <ProblemView error={put.error} />}
        </form>
      ) : null}
    </Panel>
  );
}

function Spending({ period, by }: { readonly period: CostPeriod; readonly by: Grouping }): ReactElement {
  const polling = usePolling() || 10_000;
  const costs = useQuery({ ...costsQuery(period), refetchInterval: polling });
  const series = useQuery({ ...costSeriesQuery(period, by), refetchInterval: polling, retry: false });
  const saved = costs.data === undefined ? null : describeSaved(costs.data);
  const sums = series.data === undefined ? null : sumSeries(series.data);
  const nameOfKey = nameKeys(useKeys());
  const nameGroup = (name: string): string => ((by === 'key' ? nameOfKey(name) : null) ?? name) || 'none';
  return (
    <Panel
      title={<>Spent {periodWords[period]}</>}
      actions={
        <>
          {saved === null ? null : <span className="figure text-sm text-done">{saved}</span>}
          <span className="figure font-semibold">
            {costs.data === undefined ? '' : formatUsd(costs.data.spend_usd)}
          </span>
        </>
      }
    >
      {series.data === undefined ? null : <CostChart costs={series.data} period={period} by={by} />}
      <table className={`${tableClass} mt-3`}>
        <thead>
          <tr>
            <th>{by}</th>
            <th className="text-right!">Cost</th>
          </tr>
        </thead>
        <tbody>
          {(
            sums ??
            costs.data?.by_capability.map(({ capability, spend_usd }) => ({
              name: capability,
              usd: spend_usd,
            })) ??
            []
          ).map(({ name, usd }, index) => (
            <tr key={name}>
              <td>
                <span
                  className={`mr-2 inline-block size-2 rounded-full ${seriesDots[index] ?? 'bg-quiet'}`}
                />
                {by === 'capability' ? (
                  <Link
                    to="/costs/ledger"
                    search={{ capability: name }}
                    className="hover:text-accent hover:underline"
                  >
                    {name}
                  </Link>
                ) : (
                  <span title={name}>{nameGroup(name)}</span>
                )}
              </td>
              <td className="figure text-right!">{formatUsd(usd)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {sums?.length === 0 ? <p className="mt-2 text-sm text-muted">No spend {periodWords[period]}.</p> : null}
    </Panel>
  );
}
