/** Temporal is a port here that is away, or slow, when a test decides it; everything else is real. */

import { ScheduleRequest } from '@capstan/core/contracts/schedule';
import { expect, it } from 'vitest';
import type { ScheduleOrder, TemporalSchedules } from '../../../src/clients/temporal/schedules.ts';
import {
  deleteSchedule,
  insertSchedule,
  readSchedule,
  type ScheduleKey,
  updateSchedule,
} from '../../../src/db/schedule.ts';
import { deliverDue, settleDeliveries } from '../../../src/parts/delivery/deliveries.ts';
import { newId } from '../../../src/parts/ids.ts';
import { changedSchedules, deliverSchedule } from '../../../src/use-cases/schedules/delivery.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aProject } from '../../support/factories.ts';
import { waitFor } from '../../support/wait.ts';

const { db } = useDatabase();

function aGate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

function aBody(body: object = {}): ScheduleRequest {
  return ScheduleRequest.parse({ name: 'nightly', pipeline: 'trailer', cron: '@daily', ...body });
}

async function aSchedule(body: object = {}): Promise<ScheduleKey> {
  const { project_id } = await aProject(db);
  const schedule_id = newId('schedule');
  const key = { project_id, schedule_id, workflow_id: `trailer/${schedule_id}` };
  await insertSchedule(db, { ...key, created_by: 'key_1' }, aBody(body));
  return key;
}

/** A server process, and its messages to Temporal. */
function aDelivery(temporal: Partial<TemporalSchedules> = {}, payloadKey = '') {
  const told: (ScheduleOrder | string)[] = [];
  const ctx = aDeliveryCtx(db, {
    payloadKeys: [payloadKey],
    schedules: {
      put: async (order) => void told.push(order),
      remove: async ({ workflow_id }) => void told.push(workflow_id.slice('trailer/'.length)),
      ...temporal,
    },
  });
  const delivery = {
    deliverSoon: (id: string) => deliverSchedule(ctx, id),
    deliverOverdue: async () => (await deliverDue(ctx, changedSchedules)).delivered,
    settled: () => settleDeliveries(ctx),
  };
  return { told, delivery };
}

/** Maintenance leaves to the process that made a change what is younger than this. */
function passThreeSeconds() {
  return db.raw(`update schedule set updated_at = updated_at - interval '4 seconds'`);
}

async function isDelivered({ schedule_id }: ScheduleKey): Promise<boolean> {
  const row = await readSchedule(db, schedule_id);
  return row !== undefined && row.delivered_version === row.version;
}

it('sends the row to Temporal once', async () => {
  const key = await aSchedule({ cron: '0 12 13 * fri', timezone: 'Asia/Tokyo', overlap: 'cancel_other' });
  const { told, delivery } = aDelivery();
  await delivery.deliverSoon(key.schedule_id);
  await passThreeSeconds();
  expect(await delivery.deliverOverdue()).toBe(0);
  expect(told).toEqual([
    {
      ...key,
      name: 'nightly',
      pipeline: 'trailer',
      calendar: '"0 12 13 * fri" in Asia/Tokyo',
      starts: { lines: ['0 12 13 * *', '0 12 * * fri'], timezone: 'Asia/Tokyo' },
      overlap: 'cancel_other',
      catch_up_ms: 60_000,
      paused: false,
      keeps_pause: false,
    },
  ]);
  expect(await isDelivered(key)).toBe(true);
});

it('makes up for changes and deletions while Temporal was away, and forgets the row of a deleted one', async () => {
  const [changed, deleted] = [await aSchedule(), await aSchedule()];
  const away = aDelivery({ put: () => Promise.reject(new Error('connection refused')) });
  for (const { schedule_id } of [changed, deleted]) await away.delivery.deliverSoon(schedule_id);
  await updateSchedule(db, changed.schedule_id, aBody({ cron: '@hourly' }));
  await deleteSchedule(db, deleted);
  await passThreeSeconds();
  const back = aDelivery();
  expect(await back.delivery.deliverOverdue()).toBe(2);
  expect(back.told).toHaveLength(2);
  expect(back.told).toContainEqual(expect.objectContaining({ ...changed, calendar: '"@hourly" in UTC' }));
  expect(back.told).toContain(deleted.schedule_id);
  expect(await isDelivered(changed)).toBe(true);
  expect(await db('schedule').where({ schedule_id: deleted.schedule_id })).toEqual([]);
});

it('never lets an older state come after a newer one, whichever process sends it', async () => {
  const key = await aSchedule();
  const gate = aGate();
  const asked: string[] = [];
  const slow = aDelivery({
    put: async ({ calendar }) => {
      asked.push(calendar);
      await gate.opened;
    },
  });
  const first = slow.delivery.deliverSoon(key.schedule_id);
  await waitFor('the first to be told', () => asked.length === 1);
  await updateSchedule(db, key.schedule_id, aBody({ cron: '@hourly' }));
  const other = aDelivery();
  await other.delivery.deliverSoon(key.schedule_id);
  expect(other.told).toEqual([]);
  gate.open();
  await first;
  expect(asked).toEqual(['"@daily" in UTC', '"@hourly" in UTC']);
  expect(await isDelivered(key)).toBe(true);
});

it('does not make a caller wait for a Temporal that does not answer', async () => {
  const { schedule_id } = await aSchedule();
  const gate = aGate();
  const { delivery } = aDelivery({ put: () => gate.opened });
  await delivery.deliverSoon(schedule_id); // while Temporal is still silent
  gate.open();
  await delivery.settled();
});

it('holds few connections to the database while Temporal is slow, however many wait', async () => {
  for (let n = 0; n < 12; n++) await aSchedule();
  await passThreeSeconds();
  const { opened, open } = aGate();
  let [begun, underWay, most] = [0, 0, 0];
  const { delivery } = aDelivery({
    put: async () => {
      begun += 1;
      most = Math.max(most, ++underWay);
      await opened;
      underWay -= 1;
    },
  });
  const delivering = delivery.deliverOverdue();
  await waitFor('the first of them', () => begun > 0);
  for (let n = 0; n < 20; n++) await db.raw('select 1'); // no statement waits for a connection
  open();
  await delivering;
  expect([begun >= 12, most <= 3]).toEqual([true, true]);
});

it('sends schedules under another payload key, or under none, again under the new one', async () => {
  await db('schedule').delete();
  const [plain, old, deleted] = [await aSchedule(), await aSchedule(), await aSchedule()];
  const orders = [expect.objectContaining(plain), expect.objectContaining(old)];
  await aDelivery().delivery.deliverSoon(plain.schedule_id);
  const [first, away, second, none] = [
    aDelivery({}, 'k0'),
    aDelivery({ put: () => Promise.reject(new Error('connection refused')) }, 'k1'),
    aDelivery({}, 'k1'),
    aDelivery(),
  ];
  for (const { schedule_id } of [old, deleted]) await first.delivery.deliverSoon(schedule_id);
  await db('schedule').where({ schedule_id: deleted.schedule_id }).update({ deleted_at: db.fn.now() }); // by an erasure
  await passThreeSeconds();
  expect(await away.delivery.deliverOverdue()).toBe(0);
  for (const { delivery } of [second, none]) {
    expect(await delivery.deliverOverdue()).toBe(2);
    expect(await delivery.deliverOverdue()).toBe(0);
  }
  expect(second.told).toEqual(expect.arrayContaining(orders));
  expect(none.told).toEqual(expect.arrayContaining(orders));
});

it('sends all schedules under another key, however many', async () => {
  const many = 201;
  const { project_id } = await aProject(db);
  await aDelivery({}, 'k1').delivery.deliverOverdue();
  await db('schedule').delete();
  await db.raw(
    `insert into schedule (schedule_id, project_id, workflow_id, created_by, name, body, delivered_version, payload_key)
     select 'sch_' || n, ?, 'trailer/sch_' || n, 'key_1', 'n' || n, ?, 1, 'k0' from generate_series(1, ?) n`,
    [project_id, JSON.stringify(aBody()), many],
  );
  const { told, delivery } = aDelivery({}, 'k1');
  while ((await delivery.deliverOverdue()) > 0);
  expect(told).toHaveLength(many);
});

it('sends again after a month, and keeps a pause in Temporal then, unless a newer state comes', async () => {
  await db('schedule').delete();
  const [old, young] = [await aSchedule({ timezone: 'Europe/Berlin' }), await aSchedule()];
  const { told, delivery } = aDelivery();
  for (const { schedule_id } of [old, young]) await delivery.deliverSoon(schedule_id);
  await db.raw(`update schedule set delivered_at = delivered_at - interval '31 days' where schedule_id = ?`, [
    old.schedule_id,
  ]);
  expect(await delivery.deliverOverdue()).toBe(1);
  expect(await delivery.deliverOverdue()).toBe(0);
  await updateSchedule(db, old.schedule_id, aBody());
  await delivery.deliverSoon(old.schedule_id);
  const again = told.slice(2).map((order) => (typeof order === 'string' ? order : order.keeps_pause));
  expect(again).toEqual([true, false]);
});
