import { expect, test } from 'vitest';
import { checkWork } from '../../src/dev/doctor/work-checks.ts';
import { useDatabase } from '../support/database.ts';
import { aRun } from '../support/factories.ts';

const { db, url } = useDatabase();
const key = (id: string) => `${id}:${Buffer.alloc(32, id).toString('base64')}`;

async function check(PAYLOAD_KEYS: string | undefined) {
  const checks = await checkWork({ environment: { PAYLOAD_KEYS } }, url);
  return checks.map(({ name, status, found }) => ({ name, status, found }));
}

test('runs that hang for lack of a payload key, and secrets that no key opens, are counted with their keys', async () => {
  expect(await check(undefined)).toMatchObject([{ status: 'ok' }, { status: 'ok' }]);
  const runs = [await aRun(db), await aRun(db)];
  const message =
    'a payload in Temporal is encrypted by the key "k0" of PAYLOAD_KEYS; there is none\n  at decrypt';
  await db('run').update({ stalled: JSON.stringify({ message, since: new Date().toISOString() }) });
  const { project_id } = runs[0] as { project_id: string };
  const secret = {
    project_id,
    name: 'token',
    capabilities: ['echo'],
    hosts: [],
    sealed: Buffer.from('x'),
    key_id: 'k0',
  };
  await db('secret').insert({ ...secret, set_by: 'key_a' });
  expect(await check(key('k1'))).toEqual([
    {
      name: 'runs',
      status: 'warning',
      found: `2 open runs cannot make progress. 2: ${message.split('\n')[0]}`,
    },
    {
      name: 'payload keys',
      status: 'missing',
      found:
        'encrypted by keys that are missing: 1 secrets and 0 answers by k0; PAYLOAD_KEYS has k1. Steps that need them wait',
    },
  ]);
  expect((await check(`${key('k1')},${key('k0')}`))[1]).toMatchObject({ status: 'ok' });
  expect(await checkWork({ environment: {} }, undefined)).toEqual([]);
});
