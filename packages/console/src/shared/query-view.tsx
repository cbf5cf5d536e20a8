import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';
import { AnswerError, isStatus } from '../api/problem-error.ts';
import { NotFound } from '../layout/not-found.tsx';
import { ProblemView } from './problem-view.tsx';

/** A refusal does not change with a retry. */
function mayHelp(error: Error): boolean {
  const status = error instanceof AnswerError ? error.status : 0;
  return status < 400 || status >= 500 || status === 429;
}

/** Shows a query's data, or its error. Known data stays when a refetch fails. */
export function QueryView<Data>({ query, children }: QueryViewProps<Data>): ReactElement {
  const { data, error } = query;
  if (data !== undefined) return <>{children(data)}</>;
  if (isStatus(error, 404)) return <NotFound />;
  if (error !== null) {
    return (
      <div className="p-4">
        <ProblemView error={error} onRetry={mayHelp(error) ? () => void query.refetch() : undefined} />
      </div>
    );
  }
  return (
    <p className="p-4 text-sm text-muted" aria-live="polite">
      Loading …
    </p>
  );
}

export interface QueryViewProps<Data> {
  readonly query: UseQueryResult<Data>;
  readonly children: (data: Data) => ReactNode;
}
