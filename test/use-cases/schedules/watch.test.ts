/** Temporal is a port here, which reports the state of schedules and their starts; everything else is real. */

import { ScheduleRequest } from '@capstan/core/contracts/schedule';
import { noTelemetry } from '@capstan/core/telemetry/telemetry';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import type { TemporalSchedules } from '../../../src/clients/temporal/schedules.ts';
import { insertVersion } from '../../../src/db/pipeline.ts';
import { insertSchedule, listGaps, noteSkip, updateSchedule } from '../../../src/db/schedule.ts';
import { newId } from '../../../src/parts/ids.ts';
import { storeDefinition } from '../../../src/use-cases/pipelines/pipelines.ts';
import { submitScheduledRun } from '../../../src/use-cases/schedules/scheduled-runs.ts';
import { watchStarts } from '../../../src/use-cases/schedules/watch.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { anInstance, aProject } from '../../support/factories.ts';
import { anIntakeCtx } from '../../support/intake.ts';

const { db } = useDatabase();
beforeAll(() => anInstance(db, { name: 'concat' }));
beforeEach(() => db('schedule').update({ deleted_at: db.fn.now() }));

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** The start of an hour in the past. */
const zero = Date.parse('2026-03-01T00:00:00Z');
const at = (hours: number) => new Date(zero + hours * hourMs).toISOString();

/** Hourly, watched from half an hour before `zero` on. */
async function aSchedule(body: object = {}) {
  const { project_id } = await aProject(db);
  const steps = [{ id: 'a', capability: 'concat' }];
  const digest = await storeDefinition(db, { pipeline: 'trailer', version: '1', steps });
  await insertVersion(db, { project_id, pipeline: 'trailer', version: '1' }, { digest });
  const schedule_id = newId('schedule');
  const key = { project_id, schedule_id, workflow_id: `trailer/${schedule_id}`, created_by: 'key_1' };
  const request = ScheduleRequest.parse({ name: 'n', pipeline: 'trailer', cron: '@hourly', ...body });
  await insertSchedule(db, key, request);
  const since = new Date(zero - hourMs / 2);
  await db('schedule')
    .where({ schedule_id })
    .update({ watched_until: since, watch_at: since, delivered_version: 1 });
  return { ...key, request };
}

type Schedule = Awaited<ReturnType<typeof aSchedule>>;

/** @param minutes after `zero` */
function watch(minutes: number, temporal: Partial<TemporalSchedules> = {}): Promise<number> {
  const ctx = { ...aDeliveryCtx(db, { schedules: temporal }), telemetry: noTelemetry } as never;
  return watchStarts(ctx, zero + minutes * minuteMs);
}

async function start(
  { schedule_id, workflow_id }: Schedule,
  hours: number,
  finishedAt: string | null = null,
) {
  const ctx = anIntakeCtx(db, { mostOpen: 100 });
  await submitScheduledRun(ctx, { schedule_id, scheduled_at: at(hours), workflow_id });
  if (finishedAt === null) return;
  await db('run')
    .where({ schedule_id, scheduled_at: at(hours) })
    .update({ finished_at: finishedAt, state: 'succeeded' });
}

function runsOf({ schedule_id }: Schedule) {
  return db('run').where({ schedule_id }).orderBy('scheduled_at').select('scheduled_at', 'state', 'error');
}

function rowOf({ schedule_id }: Schedule) {
  return db('schedule').where({ schedule_id }).first();
}

const missed = (more = '') => ({
  code: 'start_missed',
  message: `it did not start within its catch-up window of 1m${more}: Temporal or all workers were away`,
});

it('makes a failed run of a start whose catch-up window is over, once, and none before', async () => {
  const schedule = await aSchedule();
  expect(await watch(1)).toBe(0);
  expect(await runsOf(schedule)).toEqual([]);
  expect(await watch(2)).toBe(1);
  expect(await watch(5)).toBe(0);
  expect(await runsOf(schedule)).toEqual([
    { scheduled_at: new Date(at(0)), state: 'failed', error: missed() },
  ]);
  expect((await rowOf(schedule)).watch_at).toEqual(new Date(zero + hourMs + 1.5 * minuteMs));
});

it('ignores a start that made a run, or whose workflow waits for a worker', async () => {
  const [made, waiting] = [await aSchedule(), await aSchedule({ name: 'm' })];
  await start(made, 0);
  const asked: string[] = [];
  const isStarting = async ({ workflow_id }: { workflow_id: string }, time: Date) => {
    asked.push(`${workflow_id} ${time.toISOString()}`);
    return true;
  };
  expect(await watch(10, { isStarting })).toBe(0);
  expect(asked).toEqual([`${waiting.workflow_id} ${at(0)}`]);
  expect(await runsOf(waiting)).toEqual([]);
  expect(await watch(11)).toBe(1);
  expect(await runsOf(waiting)).toHaveLength(1);
});

it('makes one failed run of a long outage, which counts the starts before it', async () => {
  const schedule = await aSchedule({ overlap: 'allow_all' });
  expect(await watch(5 * 60 + 10)).toBe(6);
  expect(await runsOf(schedule)).toEqual([
    { scheduled_at: new Date(at(5)), state: 'failed', error: missed('; nor did the 5 before it') },
  ]);
  const [gap] = await listGaps(db, schedule.schedule_id, { after: null, limit: 9 });
  expect(gap).toMatchObject({
    outcome: 'missed',
    count: 6,
    moments: [0, 1, 2, 3, 4, 5].map((hours) => new Date(at(hours))),
    reason: expect.stringContaining('longer than the catch-up window'),
  });
});

it('waits as long as the catch-up window, and while Temporal does not answer', async () => {
  const schedule = await aSchedule({ catch_up: '2h' });
  expect(await watch(119)).toBe(0);
  const standing = () => Promise.reject(new Error('away'));
  expect(await watch(125, { standing })).toBe(0);
  expect(await runsOf(schedule)).toEqual([]);
  expect(await watch(126)).toBe(1);
});

it('counts starts as skipped while it is paused in Temporal, and none while it is paused here', async () => {
  const [there, here] = [await aSchedule(), await aSchedule({ name: 'm', paused: true })];
  await watch(70, { standing: async () => ({ paused: 'the disk is full' }) });
  expect(await rowOf(there)).toMatchObject({
    skips: 2,
    skipped_at: new Date(at(1)),
    skip_reason: 'paused in Temporal: the disk is full',
  });
  expect(await rowOf(here)).toMatchObject({ skips: 0 });
  expect([...(await runsOf(there)), ...(await runsOf(here))]).toEqual([]);
});

it('leaves what was skipped, and starts of a former calendar', async () => {
  const [skipped, changed] = [await aSchedule(), await aSchedule({ name: 'm' })];
  const gap = { schedule_id: skipped.schedule_id, gap_id: newId('gap') };
  await noteSkip(db, gap, { moments: [at(0)], reason: 'run run_1 is open' });
  await updateSchedule(db, changed.schedule_id, { ...changed.request, cron: '30 * * * *' });
  expect(await watch(10)).toBe(0);
  expect([...(await runsOf(skipped)), ...(await runsOf(changed))]).toEqual([]);
});

it('counts a start that Temporal dropped beside a run as skipped, when that run has ended', async () => {
  const schedule = await aSchedule({ overlap: 'buffer_one' });
  await start(schedule, 0);
  expect(await watch(70)).toBe(0);
  expect(await rowOf(schedule)).toMatchObject({ skips: 0 });
  await db('run')
    .where({ schedule_id: schedule.schedule_id })
    .update({ finished_at: at(1.1), state: 'succeeded' });
  expect(await watch(80)).toBe(0);
  expect(await rowOf(schedule)).toMatchObject({
    skips: 1,
    skipped_at: new Date(at(1)),
    skip_reason: 'its previous run was open, and overlap is buffer_one',
  });
  expect(await watch(130)).toBe(1);
});
