/** Calls over all capabilities, one call, and its contents. */
import type { CallContent, CallDetail, CallRecord } from '@capstan/core/contracts/call';
import { queryOptions } from '@tanstack/react-query';
import { toCallsPath } from '../calls/calls-path.ts';
import type { CallsSearch } from '../searches.ts';
import { askPlainly } from './client.ts';

interface CallPage {
  readonly items: readonly CallRecord[];
  readonly next_cursor: string | null;
}

export function callsQuery(search: CallsSearch, cursor: string) {
  const rest: Record<string, string> = cursor === '' ? { limit: '50' } : { limit: '50', cursor };
  return queryOptions({
    queryKey: ['calls', search, cursor],
    queryFn: () => askPlainly<CallPage>(toCallsPath(search, rest)),
    placeholderData: (known: CallPage | undefined) => known,
  });
}

export function callQuery(decisionId: string) {
  return queryOptions({
    queryKey: ['call', decisionId],
    queryFn: () => askPlainly<CallDetail>(`/v1/calls/${decisionId}`),
    refetchInterval: ({ state }) => (state.data?.outcome === 'running' ? 2_000 : false),
  });
}

export function callContentQuery(decisionId: string) {
  return queryOptions({
    queryKey: ['call', decisionId, 'content'],
    queryFn: () => askPlainly<CallContent>(`/v1/calls/${decisionId}/content`),
    staleTime: 60_000,
  });
}
