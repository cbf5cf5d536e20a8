import type { Secret } from '@capstan/core/contracts/secret';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

interface SecretList {
  readonly items: readonly Secret[];
  /** The stack has a key to encrypt them. */
  readonly can_be_set: boolean;
}

export function secretsQuery() {
  return queryOptions({
    queryKey: ['secrets'],
    queryFn: () => askPlainly<SecretList>('/v1/secrets'),
  });
}

export function setSecret({
  name,
  ...body
}: {
  readonly name: string;
  readonly value: string;
  readonly capabilities: readonly string[];
  readonly hosts: readonly string[];
}): Promise<Secret> {
  return askPlainly(`/v1/secrets/${encodeURIComponent(name)}`, { method: 'PUT', body });
}

export function deleteSecret(name: string): Promise<unknown> {
  return askPlainly(`/v1/secrets/${encodeURIComponent(name)}`, { method: 'DELETE' });
}
