import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { limitsQuery } from '../../api/access.ts';
import { Facts, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { describeLimits } from './limits-model.ts';

export function LimitsTab(): ReactElement {
  const query = useQuery(limitsQuery());
  return (
    <QueryView query={query}>
      {(limits) => (
        <div className="grid items-start gap-4 lg:grid-cols-2">
          {describeLimits(limits).map(({ title, lines }) => (
            <Panel key={title} title={title}>
              <Facts facts={lines.map(({ name, value }) => [name, value] as const)} />
            </Panel>
          ))}
        </div>
      )}
    </QueryView>
  );
}
