import { queryOptions } from '@tanstack/react-query';
import type { BrowserSession } from '../../../src/contracts/session.ts';
import { askPlainly } from './client.ts';

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: () => askPlainly<BrowserSession>('/v1/session'),
  staleTime: 60_000,
  retry: false,
});

export function signIn(proof: { readonly key: string } | { readonly code: string }): Promise<unknown> {
  return askPlainly('/v1/session', { method: 'POST', body: proof });
}

export function signOut(): Promise<unknown> {
  return askPlainly('/v1/session', { method: 'DELETE' });
}
