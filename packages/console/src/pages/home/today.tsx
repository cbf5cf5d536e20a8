import type { Budget } from '@capstan/core/contracts/money';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { budgetsQuery } from '../../api/money.ts';
import { describeLimit } from '../../budget/budget-model.ts';
import { LimitBar } from '../../budget/limit-bar.tsx';
import { usePolling } from '../../live/live.tsx';
import { linkClass, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

export function Today(): ReactElement {
  const query = useQuery({ ...budgetsQuery(), refetchInterval: usePolling() });
  return (
    <Panel
      title="Spent today"
      actions={
        <Link to="/costs" className={`${linkClass} text-sm`}>
          Costs
        </Link>
      }
    >
      <QueryView query={query}>
        {({ items }) => {
          const own = items.find(({ scope }) => scope === 'project');
          if (own === undefined) return null;
          return (
            <>
              <LimitBar budget={own} />
              {own.daily_limit_usd === 0 ? null : <Pace budget={own} />}
            </>
          );
        }}
      </QueryView>
    </Panel>
  );
}

/** Whether the limit is reached within its day, if spending continues at its average rate. */
function Pace({ budget }: { readonly budget: Budget }): ReactElement | null {
  const limit = describeLimit({ ...budget, period: 'day' });
  if (limit === null) return null;
  return <p className="mt-2 text-sm text-waiting">At this rate you reach the limit {limit}.</p>;
}
