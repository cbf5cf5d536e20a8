import { expect, test } from 'vitest';
import {
  addRepairDecision,
  listRepairDecisions,
  lockRepairDecisions,
  type NewRepairDecision,
} from '../../../src/db/review/repair-decision.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject } from '../../support/factories.ts';
import { untilLocked } from '../../support/locks.ts';

const { db } = useDatabase();

async function aDecision(changes: Partial<NewRepairDecision> = {}): Promise<NewRepairDecision> {
  const { project_id } =
    changes.project_id === undefined ? await aProject(db) : { project_id: changes.project_id };
  return {
    decision_id: `${newId('review')}.1.0`,
    project_id,
    capability: 'mix',
    operation: 'coerce.dB',
    place: '/gain_db',
    schema_sha256: 'ab'.repeat(32),
    outcome: 'for',
    run_id: 'run_1',
    decided_by: 'key_1',
    ...changes,
  };
}

test('decisions are alike by project, capability, operation, place and schema, and by nothing else', async () => {
  const one = await aDecision();
  const { project_id } = one;
  await addRepairDecision(db, one);
  await addRepairDecision(
    db,
    await aDecision({ project_id, outcome: 'against', run_id: 'run_2', decided_by: 'b' }),
  );
  for (const other of [
    { capability: 'cut' },
    { operation: 'coerce.s' },
    { place: '/gain' },
    { schema_sha256: 'cd'.repeat(32) },
  ])
    await addRepairDecision(db, await aDecision({ project_id, ...other }));
  await addRepairDecision(db, await aDecision());
  expect(await listRepairDecisions(db, one)).toEqual([
    { outcome: 'for', run_id: 'run_1', skill_id: null },
    { outcome: 'against', run_id: 'run_2', skill_id: null },
  ]);
});

test('a decision that is repeated does not change', async () => {
  const one = await aDecision();
  await addRepairDecision(db, one);
  await addRepairDecision(db, { ...one, outcome: 'against' });
  expect(await listRepairDecisions(db, one)).toMatchObject([{ outcome: 'for' }]);
});

test('of two decisions at once about a capability, the later one sees the earlier', async () => {
  const one = await aDecision();
  const later = { ...one, decision_id: `${newId('review')}.1.0`, outcome: 'against' as const };
  const seen = await db.transaction(async (first) => {
    await lockRepairDecisions(first, one);
    await addRepairDecision(first, one);
    const second = db.transaction(async (trx) => {
      await lockRepairDecisions(trx, later);
      await addRepairDecision(trx, later);
      return listRepairDecisions(trx, later);
    });
    await untilLocked(db, 'pg_advisory_xact_lock');
    return { second };
  });
  expect((await seen.second).map(({ outcome }) => outcome)).toEqual(['for', 'against']);
});
