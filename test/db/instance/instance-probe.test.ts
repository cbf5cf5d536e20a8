import { beforeAll, expect, it } from 'vitest';
import {
  changeSilentInstances,
  claimDueProbes,
  insertInstance,
  type Registered,
  updateRegistration,
} from '../../../src/db/instance/instance.ts';
import { useDatabase } from '../../support/database.ts';

const { db } = useDatabase(8);
beforeAll(async () => {
  await db.raw(`insert into project (project_id, name) values ('prj_one', 'one')`);
});

const registered: Registered = {
  version: '1.0.0',
  spec_url: 'http://10.0.0.1/spec',
  health_url: 'http://10.0.0.1/health',
  cost_type: 'per_call',
  rate_usd: 0.000_000_1,
  cost_notes: null,
  tags: ['a', 'b'],
  max_concurrency: 2,
  settle: 'computed',
};
const suspectNow = { state: 'suspect', reason: 'silent', failed_probes: 0, next_probe_in_ms: 0 } as const;
const up = { state: 'up', reason: null, failed_probes: 0, next_probe_in_ms: null } as const;

function insert(id: string, change: Parameters<typeof insertInstance>[2]): Promise<boolean> {
  const key = {
    instance_id: id,
    owner_project: 'prj_one',
    name: 'concat',
    endpoint: `http://10.0.0.1/${id}`,
  };
  return insertInstance(db, { ...registered, ...key }, change);
}

it('gives a due probe to one process only, and to another when that one dies', async () => {
  const ids = Array.from({ length: 60 }, (_, at) => `ins_${at}`);
  for (const id of ids) await insert(id, suspectNow);
  const rounds = await Promise.all(Array.from({ length: 6 }, () => claimDueProbes(db, 15, 15_000)));
  const claimed = rounds.flat().map(({ instance_id }) => instance_id);
  expect(new Set(claimed).size).toBe(claimed.length);
  expect([...claimed, ...(await claimDueProbes(db, 60, 0)).map((row) => row.instance_id)].sort()).toEqual(
    ids.sort(),
  );
  await db.raw(`update instance set next_probe_at = next_probe_at - interval '15 seconds'`);
  expect(await claimDueProbes(db, 100, 15_000)).toHaveLength(60);
});

it('suspects what is up and silent, but not what is due for a probe anyway', async () => {
  await insert('silent', up);
  await insert('probed', { ...up, next_probe_in_ms: 5_000 });
  await insert('beating', up);
  await db.raw(`update instance set last_heartbeat_at = now() - interval '76 seconds'
    where instance_id in ('silent', 'probed')`);
  expect(await changeSilentInstances(db, suspectNow)).toBe(1);
  const rows = await db('instance').whereIn('instance_id', ['silent', 'probed', 'beating']).select('*');
  expect(Object.fromEntries(rows.map((row) => [row.instance_id, row.state]))).toEqual({
    silent: 'suspect',
    probed: 'up',
    beating: 'up',
  });
});

it('counts a generation only when a registration differs', async () => {
  await insert('again', up);
  const generation = async () => (await db('instance').where({ instance_id: 'again' }).first()).generation;
  const again = { ...registered, instance_id: 'again' };
  await updateRegistration(db, again, up);
  expect(await generation()).toBe(1);
  await updateRegistration(db, { ...again, cost_notes: 'night rate' }, up);
  expect(await generation()).toBe(2);
  await updateRegistration(db, { ...again, cost_notes: 'night rate', tags: ['b'] }, up);
  expect(await generation()).toBe(3);
});
