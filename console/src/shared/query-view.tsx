import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';
import { ProblemView } from './problem-view.tsx';

/** What a query knows, or why not. What is known stays when asking again fails. */
export function QueryView<Data>({ query, children }: QueryViewProps<Data>): ReactElement {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error !== null) {
    return (
      <div className="p-4">
        <ProblemView error={query.error} onRetry={() => void query.refetch()} />
      </div>
    );
  }
  return (
    <p className="p-4 text-sm text-muted" aria-live="polite">
      Reading …
    </p>
  );
}

export interface QueryViewProps<Data> {
  readonly query: UseQueryResult<Data>;
  readonly children: (data: Data) => ReactNode;
}
