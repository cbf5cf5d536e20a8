import { expect, it } from 'vitest';
import { admitRuns, listAdmissibleKeys } from '../../../src/db/run/run-admission.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject, aRun } from '../../support/factories.ts';

const { db } = useDatabase();

it('of every key the next run is looked at: whether there is room by its own limit', async () => {
  const { project_id } = await aProject(db);
  const add = async (concurrency_key: string, concurrency_limit: number, over: object = {}) => {
    const { run_id } = await aRun(db, { project_id });
    await db('run')
      .where({ run_id })
      .update({ concurrency_key, concurrency_limit, ...over });
    return run_id;
  };
  const admitted = { admitted_at: new Date() };
  await add('full', 1, admitted);
  await add('full', 1);
  await add('full', 9); // later: it does not overtake
  await add('ended', 1, { ...admitted, finished_at: new Date() });
  const next = [await add('ended', 1)];
  await add('paused', 1, { state: 'paused' });
  next.push(await add('paused', 1));
  await add('wide', 2, admitted);
  next.push(await add('wide', 2));
  await add('wide', 2);
  const keys = await listAdmissibleKeys(db, 10);
  expect(keys).toEqual(
    ['ended', 'paused', 'wide'].map((concurrency_key) => ({ project_id, concurrency_key })),
  );
  expect(await listAdmissibleKeys(db, 2)).toHaveLength(2);
  const runs: string[] = [];
  for (const key of keys) runs.push(...(await admitRuns(db, key, 10)));
  expect(runs).toEqual(next);
  expect(await listAdmissibleKeys(db, 10)).toEqual([]);
});
