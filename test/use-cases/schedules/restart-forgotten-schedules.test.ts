import { ScheduleRequest } from '@capstan/core/contracts/schedule';
import { expect, test } from 'vitest';
import { insertSchedule } from '../../../src/db/schedule.ts';
import { restartForgotten, settleDeliveries } from '../../../src/parts/delivery/deliveries.ts';
import { newId } from '../../../src/parts/ids.ts';
import { changedSchedules } from '../../../src/use-cases/schedules/delivery.ts';
import { useDatabase } from '../../support/database.ts';
import { aDeliveryCtx } from '../../support/delivery.ts';
import { aProject } from '../../support/factories.ts';

const { db } = useDatabase();

test('a schedule that Temporal has forgotten is sent again, one that it knows or has never received is not', async () => {
  const { project_id } = await aProject(db);
  const add = async (name: string, delivered_version: number) => {
    const schedule_id = newId('schedule');
    const body = ScheduleRequest.parse({ name, pipeline: 'p', cron: '0 0 * * *' });
    const key = { project_id, schedule_id, workflow_id: `p/${schedule_id}`, created_by: 'key_1' };
    await insertSchedule(db, key, body);
    await db('schedule').where({ schedule_id }).update({ delivered_version });
    return schedule_id;
  };
  const [forgotten, known, late, unheard] = [
    await add('forgotten', 1),
    await add('known', 1),
    await add('not_listed_yet', 1),
    await add('unheard', 0),
  ];
  const told: string[] = [];
  const ctx = aDeliveryCtx(db, {
    schedules: {
      put: async ({ schedule_id }) => {
        told.push(schedule_id);
        throw new Error('Temporal is away');
      },
      list: async function* () {
        yield `p/${known}`;
      },
      standing: async ({ workflow_id }) => (workflow_id === `p/${forgotten}` ? null : { paused: null }),
    },
  });
  expect(await restartForgotten(ctx, changedSchedules)).toBe(0); // of this moment
  expect(await restartForgotten(ctx, changedSchedules, { olderThanMs: 0 })).toBe(1);
  await settleDeliveries(ctx);
  expect(told).toEqual([forgotten]);
  const rows = await db('schedule')
    .where({ delivered_version: 0 })
    .orderBy('schedule_id')
    .pluck('schedule_id');
  expect(rows).toEqual([forgotten, unheard].sort());
  expect(rows).not.toContain(late);
});
