import { ListQuery } from '@capstan/core/contracts/primitives';
import {
  Backfill,
  BackfillList,
  BackfillRequest,
  Schedule,
  ScheduleGapList,
  ScheduleList,
  ScheduleRequest,
} from '@capstan/core/contracts/schedule';
import { z } from 'zod';
import {
  cancelBackfill,
  createBackfill,
  getBackfill,
  listBackfillsOf,
} from '../../use-cases/schedules/backfills.ts';
import {
  createSchedule,
  getSchedule,
  listGapsOf,
  listSchedulesPage,
  removeSchedule,
  replaceSchedule,
  setSchedulePaused,
} from '../../use-cases/schedules/schedules.ts';
import { triggerSchedule } from '../../use-cases/schedules/trigger.ts';
import { json, optionalJson } from '../input.ts';
import { IdPath, KeyHeaders, markReplayed, readIdempotency, startErrors } from '../parameters.ts';
import { type Route, route } from '../route.ts';

const BackfillPath = IdPath.extend({ backfill: z.string().min(1).max(128) });

function switchSchedule(act: 'pause' | 'resume', summary: string): Route {
  return route(`POST /v1/schedules/{id}/${act}`, {
    operation: `${act}_schedule`,
    tag: 'schedules',
    summary,
    scope: 'run:write',
    params: IdPath,
    responses: { 200: Schedule },
    result: (ctx, { caller, params }) =>
      setSchedulePaused(ctx, { by: caller, schedule_id: params.id }, act === 'pause'),
  });
}

export const scheduleRoutes: readonly Route[] = [
  route('POST /v1/schedules', {
    operation: 'create_schedule',
    tag: 'schedules',
    summary: 'Create a schedule that starts runs',
    description:
      'Each start resolves the version: the named one, or the current version of the alias. If day and weekday are both given, either is enough, as in cron. Where the clock skips a time, the start is at the next minute that exists; where the clock repeats a time, the schedule starts once. While Temporal is unavailable, the answer has `delivered: false`, and the schedule is sent to Temporal later.',
    scope: 'run:write',
    body: json(ScheduleRequest, 'data'),
    responses: { 201: Schedule },
    errors: ['request_invalid', 'job_invalid', 'media_unknown', 'state_conflict'],
    handle: async (ctx, { caller, body }) => {
      const schedule = await createSchedule(ctx, caller, body);
      return { status: 201, headers: { Location: `/v1/schedules/${schedule.schedule_id}` }, body: schedule };
    },
  }),
  route('GET /v1/schedules', {
    operation: 'list_schedules',
    tag: 'schedules',
    summary: 'List schedules by name',
    scope: 'run:read',
    query: ListQuery.strict(),
    responses: { 200: ScheduleList },
    result: (ctx, { caller, query }) => listSchedulesPage(ctx, caller.project_id, query),
  }),
  route('GET /v1/schedules/{id}', {
    operation: 'get_schedule',
    tag: 'schedules',
    summary: 'Show a schedule with the next times it starts a run',
    scope: 'run:read',
    params: IdPath,
    responses: { 200: Schedule },
    result: (ctx, { caller, params }) =>
      getSchedule(ctx, { project_id: caller.project_id, schedule_id: params.id }),
  }),
  route('PUT /v1/schedules/{id}', {
    operation: 'replace_schedule',
    tag: 'schedules',
    summary: 'Replace a schedule; omitted fields get their defaults',
    scope: 'run:write',
    params: IdPath,
    body: json(ScheduleRequest, 'data'),
    responses: { 200: Schedule },
    errors: ['request_invalid', 'job_invalid', 'media_unknown', 'state_conflict'],
    result: (ctx, { caller, params, body }) =>
      replaceSchedule(ctx, { by: caller, schedule_id: params.id }, body),
  }),
  route('DELETE /v1/schedules/{id}', {
    operation: 'delete_schedule',
    tag: 'schedules',
    summary: 'Delete a schedule; its runs continue',
    scope: 'run:write',
    params: IdPath,
    responses: { 204: 'empty' },
    handle: async (ctx, { caller, params }) => {
      await removeSchedule(ctx, { by: caller, schedule_id: params.id });
      return { status: 204 };
    },
  }),
  switchSchedule('pause', 'Pause a schedule; a repeated request changes nothing'),
  switchSchedule(
    'resume',
    'Resume a schedule, also one that was paused in Temporal; runs missed during the pause are not started',
  ),
  route('POST /v1/schedules/{id}/trigger', {
    operation: 'trigger_schedule',
    tag: 'schedules',
    summary: 'Start a run of a schedule now, if the overlap policy allows it',
    description:
      'A start that is refused is answered with its problem; so is one that the policy `skip` skips. With `skip` and `allow_all`, `last_start` of the answer names the run. With the other policies, Temporal starts it soon after.',
    scope: 'run:write',
    rate: 'start',
    params: IdPath,
    headers: KeyHeaders,
    body: optionalJson(z.strictObject({}), 'data'),
    responses: { 202: Schedule },
    errors: ['state_conflict', 'unavailable', ...startErrors],
    handle: async (ctx, { caller, params, headers, bytes }) => {
      const { schedule, replayed } = await triggerSchedule(ctx, {
        project_id: caller.project_id,
        schedule_id: params.id,
        idempotency: readIdempotency(headers, bytes),
        by: caller.key_id,
      });
      return { status: 202, headers: markReplayed(replayed), body: schedule };
    },
  }),
  route('GET /v1/schedules/{id}/history', {
    operation: 'list_schedule_gaps',
    tag: 'schedules',
    summary: 'List the starts that came to nothing, newest first, for 90 days',
    description:
      'Each entry names the moments of one reason: skipped by the settings, or missed in an outage.',
    scope: 'run:read',
    params: IdPath,
    query: ListQuery.strict(),
    responses: { 200: ScheduleGapList },
    result: (ctx, { caller: { project_id }, params, query }) =>
      listGapsOf(ctx, { project_id, schedule_id: params.id }, query),
  }),
  route('POST /v1/schedules/{id}/backfills', {
    operation: 'create_backfill',
    tag: 'schedules',
    summary: 'Start a schedule for a range of its calendar in the past, oldest first',
    description:
      'Each moment of the calendar has one run, also when it is asked for twice: moments that have a run are left out, except those that were only missed. `at_once` limits the open runs. The overlap policy does not hold.',
    scope: 'run:write',
    rate: 'start',
    params: IdPath,
    body: json(BackfillRequest),
    responses: { 201: Backfill },
    result: (ctx, { caller, params, body }) =>
      createBackfill(ctx, caller, { schedule_id: params.id, ...body }),
  }),
  route('GET /v1/schedules/{id}/backfills', {
    operation: 'list_backfills',
    tag: 'schedules',
    summary: 'List the backfills of a schedule, newest first',
    scope: 'run:read',
    params: IdPath,
    query: ListQuery.strict(),
    responses: { 200: BackfillList },
    result: (ctx, { caller: { project_id }, params, query }) =>
      listBackfillsOf(ctx, { project_id, schedule_id: params.id }, query),
  }),
  route('GET /v1/schedules/{id}/backfills/{backfill}', {
    operation: 'get_backfill',
    tag: 'schedules',
    summary: 'Show a backfill with its progress',
    scope: 'run:read',
    params: BackfillPath,
    responses: { 200: Backfill },
    result: (ctx, { caller: { project_id }, params: { id: schedule_id, backfill: backfill_id } }) =>
      getBackfill(ctx, { project_id, schedule_id, backfill_id }),
  }),
  route('POST /v1/schedules/{id}/backfills/{backfill}/cancel', {
    operation: 'cancel_backfill',
    tag: 'schedules',
    summary: 'Start nothing more of a backfill; its open runs continue',
    scope: 'run:write',
    params: BackfillPath,
    responses: { 200: Backfill },
    result: (
      ctx,
      { caller: { project_id, key_id: by }, params: { id: schedule_id, backfill: backfill_id } },
    ) => cancelBackfill(ctx, { project_id, schedule_id, backfill_id, by }),
  }),
];
