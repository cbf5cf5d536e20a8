/** Names of keys and people beside their ids, for keys that may list them. */
import type { Key } from '@capstan/core/contracts/access';
import { useQuery } from '@tanstack/react-query';
import { keysQuery } from './access.ts';
import { sessionQuery } from './session.ts';

/** Of this key's projects; null while they are unknown, and for a key that may not list them. */
export function useKeys(): readonly Key[] | null {
  const scopes: readonly string[] = useQuery(sessionQuery).data?.scopes ?? [];
  const isAllowed = scopes.includes('admin');
  return useQuery({ ...keysQuery(), enabled: isAllowed, staleTime: 60_000 }).data?.items ?? null;
}

export type NameOfKey = (keyId: string) => string | null;

/** Two keys may have one name. */
export function nameKeys(keys: readonly Pick<Key, 'key_id' | 'name'>[] | null): NameOfKey {
  const names = new Map(keys?.map(({ key_id, name }) => [key_id, name]));
  return (keyId) => names.get(keyId) ?? null;
}
