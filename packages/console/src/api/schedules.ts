import type { Backfill, BackfillRequest, Schedule, ScheduleGap } from '@capstan/core/contracts/schedule';
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

/** Newest first. */
export function backfillsQuery(scheduleId: string) {
  return queryOptions({
    queryKey: ['schedules', scheduleId, 'backfills'],
    queryFn: () =>
      askPlainly<{ readonly items: readonly Backfill[] }>(`/v1/schedules/${scheduleId}/backfills?limit=5`),
  });
}

export function createBackfill(scheduleId: string, body: BackfillRequest): Promise<Backfill> {
  return askPlainly(`/v1/schedules/${scheduleId}/backfills`, { method: 'POST', body });
}

export function cancelBackfill(scheduleId: string, backfillId: string): Promise<Backfill> {
  return askPlainly(`/v1/schedules/${scheduleId}/backfills/${backfillId}/cancel`, { method: 'POST' });
}

/** Starts that came to nothing, newest first. */
export function gapsQuery(scheduleId: string) {
  return queryOptions({
    queryKey: ['schedules', scheduleId, 'gaps'],
    queryFn: () =>
      askPlainly<{ readonly items: readonly ScheduleGap[] }>(`/v1/schedules/${scheduleId}/history?limit=10`),
  });
}
