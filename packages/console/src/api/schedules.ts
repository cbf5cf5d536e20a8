import type { Schedule } from '@capstan/core/contracts/schedule';
import { queryOptions } from '@tanstack/react-query';
import { askPlainly } from './client.ts';

export function schedulesQuery() {
  return queryOptions({
    queryKey: ['schedules'],
    queryFn: () => askPlainly<{ readonly items: readonly Schedule[] }>('/v1/schedules?limit=200'),
  });
}

export function switchSchedule(scheduleId: string, act: 'pause' | 'resume' | 'trigger'): Promise<unknown> {
  return askPlainly(`/v1/schedules/${scheduleId}/${act}`, { method: 'POST' });
}

export function createSchedule(body: object): Promise<Schedule> {
  return askPlainly('/v1/schedules', { method: 'POST', body });
}

export function deleteSchedule(scheduleId: string): Promise<unknown> {
  return askPlainly(`/v1/schedules/${scheduleId}`, { method: 'DELETE' });
}
