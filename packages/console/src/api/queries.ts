import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { AnswerError, isStatus } from './problem-error.ts';
import { sessionQuery } from './session.ts';

const mostRetries = 3;

/** A refusal is final; only timeouts and faults of the server are retried. */
function mayPass(failures: number, error: Error): boolean {
  const status = error instanceof AnswerError ? error.status : 0;
  return failures < mostRetries && (status === 0 || status >= 500 || status === 429);
}

/** Frames of the stream keep responses fresh; without it they become stale after a few seconds. */
export function createQueries(): QueryClient {
  // The session has ended: its own query notices this only within a minute, and leads to the sign-in.
  const onError = (error: Error): void => {
    const isKnown = queries.getQueryData(sessionQuery.queryKey) !== undefined;
    if (isStatus(error, 401) && isKnown) void queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
  };
  const queries = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      // A browser without a network still reaches a server on its own computer.
      queries: { staleTime: 5_000, retry: mayPass, refetchOnWindowFocus: true, networkMode: 'always' },
      mutations: { retry: false, networkMode: 'always' },
    },
  });
  return queries;
}
