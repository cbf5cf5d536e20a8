import type { CallsHealth, RunsHealth } from '@capstan/core/contracts/health';
import { queryOptions } from '@tanstack/react-query';
import { shownResults } from '../health/health-model.ts';
import { askPlainly } from './client.ts';

export function runsHealthQuery() {
  return queryOptions({
    queryKey: ['runs', 'health'],
    queryFn: () => askPlainly<RunsHealth>(`/v1/runs/health?last=${shownResults}`),
    refetchInterval: 30_000,
  });
}

export function callsHealthQuery() {
  return queryOptions({
    queryKey: ['calls', 'health'],
    queryFn: () => askPlainly<CallsHealth>(`/v1/calls/health?last=${shownResults}`),
    refetchInterval: 30_000,
  });
}
