import { nextStarts, planStarts } from '@capstan/core/calendar/starts';
import type { Client } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createBoundedCalls, openTemporal } from '../../src/clients/temporal/connection.ts';
import {
  createSchedules,
  type ScheduleOrder,
  type TemporalSchedules,
} from '../../src/clients/temporal/schedules.ts';
import { newId } from '../../src/parts/ids.ts';

let client: Client;
let schedules: TemporalSchedules;
beforeAll(async () => {
  process.env.TEMPORAL_ADDRESS = inject('temporalAddress');
  client = openTemporal();
  const bounded = createBoundedCalls(client);
  schedules = createSchedules(client, 'nobody-works-here', (call) => bounded(call, 60_000));
});
afterAll(() => client.connection.close());

function anOrder(order: Partial<ScheduleOrder> = {}): ScheduleOrder {
  const schedule_id = newId('schedule');
  return {
    project_id: 'prj_1',
    schedule_id,
    workflow_id: `trailer/${schedule_id}`,
    pipeline: 'trailer',
    name: 'nightly',
    calendar: '"0 9 1 * *" in UTC',
    starts: { lines: ['0 9 1 * *'], timezone: 'UTC' },
    overlap: 'skip',
    catch_up_ms: 60_000,
    paused: false,
    keeps_pause: false,
    ...order,
  };
}

/** When Temporal would start it after one moment and until another, Unix milliseconds. */
async function startsInTemporal(cron: string, timezone: string, [from, to]: readonly [number, number]) {
  const order = anOrder({ starts: planStarts(cron, { timezone, now: Date.now() }) });
  await schedules.put(order);
  const { startTime } = await client.workflowService.listScheduleMatchingTimes({
    namespace: client.options.namespace,
    scheduleId: order.workflow_id,
    startTime: msToTs(from),
    endTime: msToTs(to),
  });
  await schedules.remove(order);
  return startTime.map(({ seconds }) => Number(seconds) * 1_000);
}

it('puts, replaces and removes, each as often as one likes', async () => {
  const order = anOrder({ overlap: 'buffer_one', catch_up_ms: 90_000 });
  expect(await schedules.standing(order, 5_000)).toBeNull();
  expect(await schedules.trigger(order, 'skip', 'one')).toBe('gone');
  await schedules.put(order);
  await schedules.put({ ...order, paused: true });
  const description = await client.schedule.getHandle(order.workflow_id).describe();
  expect(description).toMatchObject({
    policies: { overlap: 'BUFFER_ONE', catchupWindow: 90_000 },
    state: { paused: true },
    action: { workflowType: 'scheduledRun', args: [{ project_id: 'prj_1', schedule_id: order.schedule_id }] },
  });
  await schedules.remove(order);
  await schedules.remove(order);
  expect(await schedules.standing(order, 5_000)).toBeNull();
});

it('replaces a schedule that is encrypted by a key it lacks, and reports its state', async () => {
  const ringOf = (id: string) => `${id}:${Buffer.alloc(32, id).toString('base64')}`;
  const [older, newer] = [openTemporal(ringOf('k0')), openTemporal(ringOf('k1'))];
  const under = (ring: Client) => createSchedules(ring, 'nobody-works-here', createBoundedCalls(ring));
  const order = anOrder();
  const handle = newer.schedule.getHandle(order.workflow_id);
  try {
    await under(older).put(order);
    await expect(handle.describe()).rejects.toThrow('encrypted by the key "k0"');
    expect(await under(newer).standing(order, 5_000)).toEqual({ paused: null });
    await under(newer).put({ ...order, paused: true });
    expect(await handle.describe()).toMatchObject({
      state: { paused: true },
      action: { args: [{ project_id: 'prj_1', schedule_id: order.schedule_id }] },
    });
    await under(newer).remove(order);
  } finally {
    for (const { connection } of [older, newer]) await connection.close();
  }
});

it('reports that a schedule was paused in Temporal, and resumes it for a newer state alone', async () => {
  const order = anOrder();
  const standing = () => schedules.standing(order, 60_000);
  await schedules.put(order);
  expect(await standing()).toEqual({ paused: null });
  await client.schedule.getHandle(order.workflow_id).pause('the disk is full');
  expect(await standing()).toEqual({ paused: 'the disk is full' });
  await schedules.put({ ...order, keeps_pause: true, catch_up_ms: 90_000 });
  expect(await standing()).toEqual({ paused: 'the disk is full' });
  await schedules.put(order);
  expect(await standing()).toEqual({ paused: null });
  await schedules.remove(order);
});

const dayMs = 86_400_000;

/**
 * The middle of each day within the planned ones on which the zone changes its clock. A plan begins with the day before:
 * a day of change has two whole days before it only from the day after tomorrow on.
 */
function daysOfChange(timeZone: string): readonly number[] {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  const offsetAt = (ms: number) => Date.parse(`${format.format(ms).replace(' ', 'T')}Z`) - ms;
  const noon = Math.floor(Date.now() / dayMs) * dayMs + dayMs / 2;
  const days = Array.from({ length: 380 }, (_, day) => noon + (day + 2) * dayMs);
  return days.filter((at) => offsetAt(at) !== offsetAt(at - dayMs));
}

it.each([
  ['30 2 * * *', 'Europe/Berlin'],
  ['*/30 1-3 * * *', 'Europe/Berlin'],
  ['*/20 * * * *', 'Europe/Berlin'],
  ['30 1 * * *', 'America/New_York'],
  ['@daily', 'America/Santiago'],
  ['0 9 * * 0,6', 'America/Santiago'],
  ['15 0 * * *', 'Africa/Cairo'],
  ['15 0,1 * * sun', 'America/Havana'],
  ['8/14 * * * *', 'Australia/Lord_Howe'],
  ['10 2 * * *', 'Australia/Lord_Howe'],
  ['30 0 1,15 * sun', 'Atlantic/Azores'],
])(
  'Temporal starts at the times of the rule, around every change of the clock: %s in %s',
  async (cron, timezone) => {
    const days = daysOfChange(timezone);
    expect(days.length).toBeGreaterThan(0);
    for (const day of days) {
      const [from, to] = [day - 2 * dayMs, day + 2 * dayMs] as const;
      const starts = nextStarts(cron, { timezone, after: from, count: 400 }).filter((at) => at <= to);
      expect(await startsInTemporal(cron, timezone, [from, to])).toEqual(starts);
    }
  },
);

it.each([
  ['0 12 13 * fri', 'UTC'],
  ['*/20 * * * *', 'UTC'],
  ['50/5 23 * jan,MAR,Dec Mon-Fri', 'UTC'],
  ['1-10/3 0-2 * * 7', 'Asia/Kathmandu'],
  ['@yearly', 'Asia/Tokyo'],
  ['7 7 */10 1-12/2 5-7', 'UTC'],
])(
  'Temporal accepts every rule that is accepted here, with the same starts: %s in %s',
  async (cron, timezone) => {
    const from = Date.now() + dayMs;
    const starts = nextStarts(cron, { timezone, after: from, count: 20 });
    expect(await startsInTemporal(cron, timezone, [from, starts.at(-1) ?? 0])).toEqual(starts);
  },
);

it('takes a schedule that has no start in the planned days', async () => {
  const order = anOrder({ starts: { calendars: [] } });
  await schedules.put(order);
  const { info } = await client.schedule.getHandle(order.workflow_id).describe();
  expect(info.nextActionTimes).toEqual([]);
  await schedules.remove(order);
});
