import { queryOptions } from '@tanstack/react-query';
import type { Schedule } from '../../../src/contracts/schedule.ts';
import { askPlainly } from './client.ts';

export function schedulesQuery() {
  return queryOptions({
    queryKey: ['schedules'],
    queryFn: () => askPlainly<{ readonly items: readonly Schedule[] }>('/v1/schedules?limit=200'),
  });
}

export function pauseSchedule({ schedule_id, ...schedule }: Schedule, paused: boolean): Promise<unknown> {
  const {
    delivered: _delivered,
    next_at: _next,
    created_at: _made,
    updated_at: _changed,
    ...fields
  } = schedule;
  return askPlainly(`/v1/schedules/${schedule_id}`, { method: 'PUT', body: { ...fields, paused } });
}

export function createSchedule(body: object): Promise<Schedule> {
  return askPlainly('/v1/schedules', { method: 'POST', body });
}

export function deleteSchedule(scheduleId: string): Promise<unknown> {
  return askPlainly(`/v1/schedules/${scheduleId}`, { method: 'DELETE' });
}
