/** A claim checks whom its instance serves, because that may have changed since the choice. */

import type { SharedWith } from '@capstan/core/contracts/capability';
import { expect, test } from 'vitest';
import { settleAndClaim } from '../../../src/db/attempt/attempt.ts';
import { setSharing } from '../../../src/db/instance/instance.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aClaim, anInstance, aProject, aRun } from '../../support/factories.ts';

const { db } = useDatabase();

async function outcomesOf(shared_with: SharedWith, withOwn: boolean): Promise<readonly string[]> {
  const instance = await anInstance(db, { shared_with, max_concurrency: 9 });
  const direct = { run_id: null, step: null, is_first: true };
  const own = { ...direct, key: newId('call'), project_id: instance.owner_project };
  const { project_id } = await aProject(db);
  if (shared_with !== 'all' && shared_with.length > 0)
    await setSharing(db, instance.instance_id, [project_id]);
  const foreign = { ...direct, key: newId('call'), project_id };
  const run = await aRun(db, { project_id });
  const asked = withOwn ? [own, foreign] : [foreign];
  const claims = asked.map((over) => aClaim(run, instance, over));
  const { claims: made } = await settleAndClaim(db, { ends: [], claims }, true);
  return made.map(({ outcome }) => outcome);
}

test.each([
  [[], 'gone'],
  ['all', 'claimed'],
  [['the other'], 'claimed'],
] as const)('an instance that is shared with %j is %s for another project', async (shared_with, outcome) => {
  const shared = shared_with === 'all' ? 'all' : [...shared_with];
  expect(await outcomesOf(shared, false)).toEqual([outcome]);
  expect(await outcomesOf(shared, true)).toEqual(['claimed', outcome]);
});
