import type { Budget } from '@capstan/core/contracts/money';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { budgetsQuery, putBudget } from '../../api/money.ts';
import { describeForecast } from '../../budget/budget-model.ts';
import { LimitBar } from '../../budget/limit-bar.tsx';
import { usePolling } from '../../live/live.tsx';
import { Button, linkClass, PageHead, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { LimitDialog, type Limits } from './budget-form.tsx';
import { CostControls } from './cost-controls.tsx';
import { groupsOf } from './model.ts';
import { ScopedBudgets } from './scoped-budgets.tsx';
import { Spending } from './spending.tsx';

export function CostsPage(): ReactElement {
  const search = useSearch({ from: '/costs' });
  const groups = groupsOf(search);
  const budgets = useQuery({ ...budgetsQuery(), refetchInterval: usePolling() });
  return (
    <>
      <PageHead
        title="Costs"
        actions={
          <>
            <CostControls search={search} />
            <Link to="/costs/ledger" className={`${linkClass} px-1 text-sm`}>
              Ledger
            </Link>
          </>
        }
      />
      {groups === null ? (
        <p className="text-sm text-muted">Type the name of a label above, such as team.</p>
      ) : (
        <Spending search={search} groups={groups} />
      )}
      <div className="my-4 grid gap-4 lg:grid-cols-2">
        <QueryView query={budgets}>
          {({ items }) => items.map((budget) => <BudgetPanel key={budget.scope} budget={budget} />)}
        </QueryView>
      </div>
      <ScopedBudgets />
    </>
  );
}

function BudgetPanel({ budget }: { readonly budget: Budget }): ReactElement {
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const put = useMutation({
    mutationFn: ({ usd }: Limits) => putBudget(budget.scope, usd),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['budgets'] });
      setOpen(false);
    },
  });
  const title = budget.scope === 'project' ? 'Today, this project' : 'Today, all projects';
  const forecast = describeForecast({ ...budget, period: 'day' });
  return (
    <Panel
      title={title}
      actions={
        <Button look="bare" aria-label={`Limit: ${title}`} onClick={() => setOpen(true)}>
          Limit …
        </Button>
      }
    >
      <LimitBar budget={budget} />
      {forecast === null ? null : <p className="mt-2 text-sm text-muted">{forecast}</p>}
      {isOpen ? (
        <LimitDialog
          title={title}
          about={`The limit of each day of ${budget.timezone}, from now on. 0 is none.`}
          limits={{ usd: budget.daily_limit_usd, soft: null }}
          change={put}
          onClose={() => setOpen(false)}
        />
      ) : null}
    </Panel>
  );
}
