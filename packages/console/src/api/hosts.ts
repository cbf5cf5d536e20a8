import type { Host } from '@capstan/core/contracts/host-list';
import { queryOptions } from '@tanstack/react-query';
import type { DrainChange } from './capabilities.ts';
import { askPlainly } from './client.ts';

export function hostsQuery() {
  return queryOptions({
    queryKey: ['hosts'],
    queryFn: () => askPlainly<{ readonly items: readonly Host[] }>('/v1/hosts?limit=200'),
  });
}

export function changeHostDrain(name: string, { act, reason = '' }: DrainChange): Promise<Host> {
  return askPlainly(`/v1/hosts/${name}/${act}`, { method: 'POST', body: reason === '' ? {} : { reason } });
}
