import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createBoundedCalls, openTemporal } from '../../src/clients/temporal/connection.ts';
import {
  createSchedules,
  type ScheduleOrder,
  type TemporalSchedules,
} from '../../src/clients/temporal/schedules.ts';
import { readCron } from '../../src/core/cron.ts';
import { newId } from '../../src/services/ids.ts';

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
    cron: ['0 9 1 * *'],
    timezone: 'UTC',
    overlap: 'skip',
    catch_up_ms: 60_000,
    paused: false,
    ...order,
  };
}

async function nextTimes(order: Partial<ScheduleOrder>): Promise<readonly Date[]> {
  const whole = anOrder(order);
  await schedules.put(whole);
  const times = await schedules.nextTimes(whole, 60_000);
  await schedules.remove(whole);
  return times ?? [];
}

function fieldsOf(time: Date) {
  return {
    day: time.getUTCDate(),
    weekday: time.getUTCDay(),
    clock: time.toISOString().slice(11, 16),
  };
}

it('puts, replaces and removes, each as often as one likes', async () => {
  const order = anOrder({ overlap: 'buffer_one', catch_up_ms: 90_000 });
  expect(await schedules.nextTimes(order, 5_000)).toBeNull();
  expect(await schedules.trigger(order, 'skip')).toBe('gone');
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
  expect(await schedules.nextTimes(order, 5_000)).toBeNull();
});

it('replaces what is encrypted by a key that it does not have, and tells its next times', async () => {
  const ringOf = (id: string) => `${id}:${Buffer.alloc(32, id).toString('base64')}`;
  const [older, newer] = [openTemporal(ringOf('k0')), openTemporal(ringOf('k1'))];
  const under = (ring: Client) => createSchedules(ring, 'nobody-works-here', createBoundedCalls(ring));
  const order = anOrder();
  const handle = newer.schedule.getHandle(order.workflow_id);
  try {
    await under(older).put(order);
    await expect(handle.describe()).rejects.toThrow('encrypted by the key "k0"');
    expect(await under(newer).nextTimes(order, 5_000)).toHaveLength(10);
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

it('keeps to the clock on the wall when the zone changes its offset', async () => {
  const times = await nextTimes({ timezone: 'America/New_York' });
  const clock = new Intl.DateTimeFormat('en-GB', { timeZone: 'America/New_York', timeStyle: 'short' });
  expect(times).toHaveLength(10);
  expect(new Set(times.map((time) => clock.format(time)))).toEqual(new Set(['09:00']));
  expect(new Set(times.map((time) => time.getUTCHours()))).toEqual(new Set([13, 14]));
});

it('means either where day and weekday are both given', async () => {
  const times = await nextTimes({ cron: readCron('0 12 13 * fri') });
  const seen = times.map(fieldsOf);
  expect(seen).toHaveLength(10);
  for (const { day, weekday, clock } of seen) {
    expect(clock).toBe('12:00');
    expect(day === 13 || weekday === 5).toBe(true);
  }
  expect(seen.some(({ weekday }) => weekday === 5)).toBe(true);
});

it.each([
  ['*/20 * * * *', /:(00|20|40)$/],
  ['50/5 23 * jan,MAR,Dec Mon-Fri', /^23:5[05]$/],
  ['1-10/3 0-2 * * 7', /^0[0-2]:(01|04|07|10)$/],
  ['@yearly', /^00:00$/],
  ['0 0 29 feb *', /^00:00$/],
  ['7 7 */10 1-12/2 5-7', /^07:07$/],
])('what is accepted here is taken by Temporal: %s', async (cron, clock) => {
  const times = await nextTimes({ cron: readCron(cron) });
  expect(times.length).toBeGreaterThan(0);
  for (const time of times) expect(fieldsOf(time).clock).toMatch(clock);
});
