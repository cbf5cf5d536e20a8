import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import type { Json } from '../../../../src/contracts/primitives.ts';
import { limitsQuery } from '../../api/access.ts';
import { JsonTree } from '../../json/json-tree.tsx';
import { Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';

export function LimitsTab(): ReactElement {
  const query = useQuery(limitsQuery());
  return (
    <Panel title="What one request may hold, and how many may come">
      <QueryView query={query}>
        {(limits) => <JsonTree value={limits as unknown as Json} name="limits" />}
      </QueryView>
    </Panel>
  );
}
