import type { Budget } from '@capstan/core/contracts/money';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { budgetsQuery, costSeriesQuery } from '../../api/money.ts';
import { describePace, paceOf } from '../../budget/budget-model.ts';
import { LimitBar } from '../../budget/limit-bar.tsx';
import { usePolling } from '../../live/live.tsx';
import { linkClass, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { useNow } from '../../shared/use-now.ts';

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

/** Whether the limit is reached within its day, if calls continue as in the last hour or two. */
function Pace({ budget }: { readonly budget: Budget }): ReactElement | null {
  const now = useNow();
  const costs = useQuery({ ...costSeriesQuery('day', 'capability'), refetchInterval: 60_000, retry: false });
  if (costs.data === undefined) return null;
  const text = describePace(budget, paceOf(costs.data, now), now);
  return text === null ? null : <p className="mt-2 text-sm text-waiting">{text}</p>;
}
