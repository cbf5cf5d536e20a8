import type { ReactElement } from 'react';
import { AnswerError } from '../api/problem-error.ts';
import { Icon } from './icon.tsx';
import { Button } from './parts.tsx';

/** An error in the server's words, with the next step: a retry, or its number for a report. */
export function ProblemView({ error, onRetry }: ProblemViewProps): ReactElement {
  const { problem, status } = error instanceof AnswerError ? error : { problem: {}, status: null };
  const said = String((error as Error)?.message ?? error);
  const more = (problem.errors ?? []).filter(
    (item, _, all) => all.length > 1 || !said.includes(item.message),
  );
  return (
    <div role="alert" className="flex gap-3 rounded-lg border border-line bg-failed-soft px-4 py-3 text-sm">
      <Icon name="triangle-alert" size={18} className="mt-0.5 text-failed" />
      <div className="min-w-0 flex-1">
        <p className="font-medium">{problem.title ?? 'This page failed'}</p>
        <p className="mt-0.5 break-words text-muted">{said}</p>
        {more.length === 0 ? null : (
          <ul className="mt-1.5 list-disc pl-5">
            {more.slice(0, 20).map(({ pointer, message }) => (
              <li key={`${pointer}${message}`}>
                <code className="font-mono text-xs">{pointer || '/'}</code> {message}
              </li>
            ))}
          </ul>
        )}
        {problem.request_id === undefined || (status ?? 0) < 500 ? null : (
          <p className="mt-1 text-xs text-muted">
            Request <code className="font-mono">{problem.request_id}</code> in the server's log.
          </p>
        )}
      </div>
      {onRetry === undefined ? null : (
        <Button onClick={onRetry} icon="rotate-cw">
          Try again
        </Button>
      )}
    </div>
  );
}

export interface ProblemViewProps {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}
