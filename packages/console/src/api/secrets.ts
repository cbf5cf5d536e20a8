import type { Secret } from '@capstan/core/contracts/secret';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

export function secretsQuery() {
  return queryOptions({
    queryKey: ['secrets'],
    queryFn: () => askPlainly<{ readonly items: readonly Secret[] }>('/v1/secrets'),
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
