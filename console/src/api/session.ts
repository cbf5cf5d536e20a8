import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

/** Who is signed in, and what the server says of itself. */
export interface ConsoleSession {
  readonly key_id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly projects: readonly {
    readonly project_id: string;
    readonly name: string;
    readonly timezone: string;
  }[];
  readonly version: string;
  readonly temporal_ui_url: string | null;
}

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: () => askPlainly<ConsoleSession>('/v1/session'),
  staleTime: 60_000,
  retry: false,
});

export function signIn(proof: { readonly key: string } | { readonly code: string }): Promise<unknown> {
  return askPlainly('/v1/session', { method: 'POST', body: proof });
}

export function signOut(): Promise<unknown> {
  return askPlainly('/v1/session', { method: 'DELETE' });
}
