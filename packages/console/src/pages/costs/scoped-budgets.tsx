/** The budgets of keys, labels, capabilities and users: each with its bar, a form for a new one, and a way to remove it. */

import type { ScopedBudget } from '@capstan/core/contracts/money';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useState } from 'react';
import { putScopedBudget, removeScopedBudget, scopedBudgetsQuery } from '../../api/money.ts';
import { describeReset, sharesOf } from '../../budget/budget-model.ts';
import { usePolling } from '../../live/live.tsx';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { formatUsd } from '../../shared/format.ts';
import { Button, fieldClass, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';

export function ScopedBudgets(): ReactElement {
  const budgets = useQuery({ ...scopedBudgetsQuery(), refetchInterval: usePolling() || 10_000 });
  const [isOpen, setOpen] = useState(false);
  return (
    <Panel
      title="Budgets of keys, labels, capabilities and users"
      actions={
        <Button look="bare" onClick={() => setOpen(!isOpen)}>
          New budget
        </Button>
      }
    >
      {isOpen ? <NewBudget onDone={() => setOpen(false)} /> : null}
      <QueryView query={budgets}>
        {({ items }) => (items.length === 0 ? <NoBudgets /> : <BudgetTable items={items} />)}
      </QueryView>
    </Panel>
  );
}

function NoBudgets(): ReactElement {
  return (
    <p className="text-sm text-muted">None yet. A budget limits a part of the calls, by day or month.</p>
  );
}

function BudgetTable({ items }: { readonly items: readonly ScopedBudget[] }): ReactElement {
  return (
    <table className={tableClass}>
      <thead>
        <tr>
          <th>Budget</th>
          <th className="text-right!">Spent</th>
          <th>
            <span className="sr-only">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((budget) => (
          <BudgetRow key={`${budget.period} ${budget.scope}`} budget={budget} />
        ))}
      </tbody>
    </table>
  );
}

function BudgetRow({ budget }: { readonly budget: ScopedBudget }): ReactElement {
  const { scope, period, limit_usd, spent_usd, reserved_usd, soft } = budget;
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => removeScopedBudget(budget),
    onSettled: () => queries.invalidateQueries({ queryKey: ['budgets', 'scoped'] }),
  });
  const { spent, reserved } = sharesOf({ daily_limit_usd: limit_usd, spent_usd, reserved_usd });
  return (
    <tr>
      <td className="w-full">
        <span className="break-all font-mono text-xs">{scope}</span>
        <span className="mt-1 flex h-2 overflow-hidden rounded-full bg-quiet-soft" aria-hidden="true">
          <span className={spent >= soft ? 'bg-failed' : 'bg-accent'} style={{ width: `${spent * 100}%` }} />
          <span className="hatched" style={{ width: `${reserved * 100}%` }} />
        </span>
      </td>
      <td className="figure text-right!" title={describeReset(budget)}>
        {formatUsd(spent_usd)} of {formatUsd(limit_usd)} a {period}
      </td>
      <td className="text-right!">
        <ConfirmButton
          look="bare"
          disabled={remove.isPending}
          onConfirm={() => remove.mutate()}
          question={{
            title: `Remove the budget of ${scope}?`,
            about: 'Its limit ends. Steps that wait for it continue.',
            confirm: 'Remove the budget',
            keep: 'Keep the budget',
          }}
        >
          Remove
        </ConfirmButton>
        {remove.error === null ? null : <ProblemView error={remove.error} />}
      </td>
    </tr>
  );
}

function NewBudget({ onDone }: { readonly onDone: () => void }): ReactElement {
  const queries = useQueryClient();
  const put = useMutation({
    mutationFn: putScopedBudget,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['budgets', 'scoped'] });
      onDone();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    put.mutate({
      scope: String(form.get('scope')),
      period: form.get('period') === 'month' ? 'month' : 'day',
      limit_usd: Number(form.get('usd')),
    });
  };
  return (
    <form onSubmit={submit} className="mb-3 flex flex-wrap items-center gap-2 text-sm">
      <input
        name="scope"
        required
        aria-label="Scope"
        placeholder="label:team=ads, key:…, user:…"
        className={`${fieldClass} w-64`}
      />
      <select name="period" aria-label="Period of the budget" className={fieldClass}>
        <option value="day">a day</option>
        <option value="month">a month</option>
      </select>
      <input
        name="usd"
        type="number"
        min="0"
        step="any"
        required
        aria-label="Limit (USD)"
        placeholder="USD"
        className={`${fieldClass} w-28`}
      />
      <Button type="submit" look="primary" disabled={put.isPending}>
        Set
      </Button>
      {put.error === null ? null : <ProblemView error={put.error} />}
    </form>
  );
}
