/** The budgets of keys, labels, capabilities and users: each with its bar, a form for a new one, and a way to remove it. */

import type { ScopedBudget } from '@capstan/core/contracts/money';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { nameKeys, useKeys } from '../../api/key-names.ts';
import { putScopedBudget, removeScopedBudget, scopedBudgetsQuery } from '../../api/money.ts';
import {
  describeForecast,
  describePeriod,
  describeReset,
  labelOfScope,
  sharesOf,
} from '../../budget/budget-model.ts';
import { usePolling } from '../../live/live.tsx';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { formatUsd } from '../../shared/format.ts';
import { Button, linkClass, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { LimitDialog, type Limits, NewBudget } from './budget-form.tsx';
import { nameScope } from './budget-scope.ts';

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
    <p className="text-sm text-muted">
      None yet. A budget limits a part of the calls, by day, month or in total.
    </p>
  );
}

function BudgetTable({ items }: { readonly items: readonly ScopedBudget[] }): ReactElement {
  const nameOfKey = nameKeys(useKeys());
  return (
    <table className={tableClass}>
      <thead>
        <tr>
          <th>Budget</th>
          <th>
            <span className="sr-only">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {items.map((budget) => (
          <BudgetRow
            key={`${budget.period} ${budget.scope}`}
            budget={budget}
            name={nameScope(budget.scope, nameOfKey)}
          />
        ))}
      </tbody>
    </table>
  );
}

interface BudgetRowProps {
  readonly budget: ScopedBudget;
  readonly name: string;
}

function BudgetRow({ budget, name }: BudgetRowProps): ReactElement {
  const { scope, period, limit_usd, spent_usd, reserved_usd, soft } = budget;
  const { spent, reserved } = sharesOf({ daily_limit_usd: limit_usd, spent_usd, reserved_usd });
  const forecast = describeForecast(budget);
  const label = labelOfScope(scope);
  return (
    <tr>
      <td className="w-full">
        <span className="flex flex-wrap items-baseline justify-between gap-x-3">
          <span className="break-all font-mono text-xs" title={scope}>
            {name}
          </span>
          <span className="figure whitespace-nowrap text-sm" title={describeReset(budget)}>
            {formatUsd(spent_usd)} of {formatUsd(limit_usd)} {describePeriod(period)}
          </span>
        </span>
        <span className="mt-1 flex h-2 overflow-hidden rounded-full bg-quiet-soft" aria-hidden="true">
          <span className={spent >= soft ? 'bg-failed' : 'bg-accent'} style={{ width: `${spent * 100}%` }} />
          <span className="hatched" style={{ width: `${reserved * 100}%` }} />
        </span>
        {label === null ? null : (
          <Link to="/runs" search={{ label }} className={`${linkClass} mt-1 mr-3 inline-block text-xs`}>
            Its runs
          </Link>
        )}
        {forecast === null ? null : <span className="mt-1 block text-xs text-muted">{forecast}</span>}
      </td>
      <td className="text-right! sm:whitespace-nowrap">
        <EditBudget budget={budget} name={name} />
        <RemoveBudget budget={budget} name={name} />
      </td>
    </tr>
  );
}

/** The limit and the soft mark; another part or period is another budget. */
function EditBudget({ budget: { scope, period, limit_usd, soft }, name }: BudgetRowProps): ReactElement {
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const put = useMutation({
    mutationFn: ({ usd, soft: share }: Limits) =>
      putScopedBudget({ scope, period, limit_usd: usd, soft: share ?? soft }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['budgets', 'scoped'] });
      setOpen(false);
    },
  });
  return (
    <>
      <Button look="bare" onClick={() => setOpen(true)}>
        Edit
      </Button>
      {isOpen ? (
        <LimitDialog
          title={`Budget of ${name}`}
          about={`The limit ${period === 'total' ? 'of all calls together' : `of each ${period}`}, from the next call on.`}
          limits={{ usd: limit_usd, soft }}
          change={put}
          onClose={() => setOpen(false)}
        />
      ) : null}
    </>
  );
}

function RemoveBudget({ budget, name }: BudgetRowProps): ReactElement {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => removeScopedBudget(budget),
    onSettled: () => queries.invalidateQueries({ queryKey: ['budgets', 'scoped'] }),
  });
  return (
    <>
      <ConfirmButton
        look="bare"
        disabled={remove.isPending}
        onConfirm={() => remove.mutate()}
        question={{
          title: `Remove the budget of ${name}?`,
          about: 'Its limit ends. Steps that wait for it continue.',
          confirm: 'Remove the budget',
          keep: 'Keep the budget',
        }}
      >
        Remove
      </ConfirmButton>
      {remove.error === null ? null : <ProblemView error={remove.error} />}
    </>
  );
}
