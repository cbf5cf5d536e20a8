import { pino } from 'pino';
import { expect, test } from 'vitest';
import { insertSchedule } from '../../../src/db/schedule.ts';
import { newId } from '../../../src/services/ids.ts';
import { createRestartForgottenSchedules } from '../../../src/services/schedules/delivery.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject } from '../../support/factories.ts';

const { db } = useDatabase();

test('a schedule that Temporal has forgotten is told again, one that it knows or has not heard of is not', async () => {
  const { project_id } = await aProject(db);
  const add = async (name: string, delivered_version: number) => {
    const schedule_id = newId('schedule');
    const body = { name, pipeline: 'p', cron: '0 0 * * *' };
    const key = { project_id, schedule_id, workflow_id: `p/${schedule_id}`, created_by: 'key_1' };
    await insertSchedule(db, key, body as never);
    await db('schedule').where({ schedule_id }).update({ delivered_version });
    return schedule_id;
  };
  const [forgotten, known, late, unheard] = [
    await add('forgotten', 1),
    await add('known', 1),
    await add('not listed yet', 1),
    await add('unheard', 0),
  ];
  const told: string[] = [];
  const restart = createRestartForgottenSchedules({
    db,
    schedules: {
      list: async function* () {
        yield `p/${known}`;
      },
      nextTimes: async ({ workflow_id }) => (workflow_id === `p/${forgotten}` ? null : []),
    },
    delivery: { deliverSoon: async (id) => void told.push(id) },
    logger: pino({ level: 'silent' }),
  });
  expect(await restart()).toBe(0); // of this moment
  expect(await restart(0)).toBe(1);
  expect(told).toEqual([forgotten]);
  const rows = await db('schedule')
    .where({ delivered_version: 0 })
    .orderBy('schedule_id')
    .pluck('schedule_id');
  expect(rows).toEqual([forgotten, unheard].sort());
  expect(rows).not.toContain(late);
});
