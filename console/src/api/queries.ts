import { QueryClient } from '@tanstack/react-query';
import { AnswerError } from './problem-error.ts';

const mostRetries = 3;

/** A refusal is final; only timeouts and faults of the server are retried. */
function mayPass(failures: number, error: Error): boolean {
  const status = error instanceof AnswerError ? error.status : 0;
  return failures < mostRetries && (status === 0 || status >= 500 || status === 429);
}

/** Frames of the stream keep responses fresh; without it they become stale after a few seconds. */
export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: { staleTime: 5_000, retry: mayPass, refetchOnWindowFocus: true },
      mutations: { retry: false },
    },
  });
}
