import { expect, test } from 'vitest';
import { closeBreaker, type OpeningReason, openBreaker } from '../../../src/db/instance/instance-calls.ts';
import { useDatabase } from '../../support/database.ts';
import { anInstance } from '../../support/factories.ts';

const { db } = useDatabase(8);

function openMs(openings: number): number {
  return 5_000 * 2 ** openings;
}
function open(instanceId: string, because: OpeningReason) {
  return openBreaker(db, instanceId, { because, openMs });
}
function endWindow(instance_id: string) {
  return db('instance')
    .where({ instance_id })
    .update({ breaker_until: db.raw("now() - interval '1 second'") });
}

test('of many that see the same faults one opens a breaker', async () => {
  const { instance_id } = await anInstance(db);
  const opened = await Promise.all(Array.from({ length: 20 }, () => open(instance_id, 'faults')));
  expect(opened.filter((ms) => ms !== null)).toEqual([5_000]);
});

test('of many that find a half-open instance without health one opens it again, for twice as long', async () => {
  const { instance_id } = await anInstance(db);
  await open(instance_id, 'faults');
  expect(await open(instance_id, 'health')).toBeNull();
  await endWindow(instance_id);
  const opened = await Promise.all(Array.from({ length: 20 }, () => open(instance_id, 'health')));
  expect(opened.filter((ms) => ms !== null)).toEqual([10_000]);
});

test('a failed trial opens it for longer, a good one closes it for good', async () => {
  const { instance_id } = await anInstance(db);
  await open(instance_id, 'faults');
  await endWindow(instance_id);
  expect(await open(instance_id, 'trial')).toBe(10_000);
  await closeBreaker(db, instance_id);
  expect(await open(instance_id, 'health')).toBeNull();
  expect(await open(instance_id, 'faults')).toBe(5_000);
});
