import { QueryClient } from '@tanstack/react-query';
import { AnswerError } from './problem-error.ts';

const mostRetries = 3;

/** A refusal stays one; only silence and faults of the server are asked again. */
function mayPass(failures: number, error: Error): boolean {
  const status = error instanceof AnswerError ? error.status : 0;
  return failures < mostRetries && (status === 0 || status >= 500 || status === 429);
}

/** Frames of the stream keep answers fresh; without it they grow old after a few seconds. */
export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: { staleTime: 5_000, retry: mayPass, refetchOnWindowFocus: true },
      mutations: { retry: false },
    },
  });
}
