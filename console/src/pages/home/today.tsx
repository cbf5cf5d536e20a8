import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { budgetsQuery } from '../../api/money.ts';
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
          return own === undefined ? null : <LimitBar budget={own} />;
        }}
      </QueryView>
    </Panel>
  );
}
