import type {
  BrowserSession,
  SessionClosed,
  SessionList,
  SignInOffer,
} from '@capstan/core/contracts/sign-in';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: () => askPlainly<BrowserSession>('/v1/session'),
  staleTime: 60_000,
  retry: false,
});

export type BrowserProof =
  | { readonly key: string }
  /** `replace`: even if the browser is signed in as another key. */
  | { readonly code: string; readonly replace?: boolean };

export function signIn(proof: BrowserProof): Promise<unknown> {
  return askPlainly('/v1/session', { method: 'POST', body: proof });
}

/** @returns the address that signs out from the provider too; empty: none */
export function signOut(): Promise<SessionClosed | ''> {
  return askPlainly('/v1/session', { method: 'DELETE' });
}

export const offerQuery = queryOptions({
  queryKey: ['sign-in'],
  queryFn: () => askPlainly<SignInOffer>('/v1/sign-in'),
  staleTime: Number.POSITIVE_INFINITY,
});

export function sessionsQuery() {
  return queryOptions({
    queryKey: ['sessions'],
    queryFn: () => askPlainly<SessionList>('/v1/sessions?limit=200'),
  });
}

export function revokeSession(sessionId: string): Promise<unknown> {
  return askPlainly(`/v1/sessions/${encodeURIComponent(sessionId)}`, { method: 'DELETE' });
}
