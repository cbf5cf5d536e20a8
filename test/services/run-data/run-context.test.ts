import { describe, expect, it } from 'vitest';
import { createRunContexts } from '../../../src/services/run-data/run-context.ts';
import { useDatabase } from '../../support/database.ts';
import { aRun } from '../../support/factories.ts';
import { stepsOf } from '../../support/steps.ts';

const { db } = useDatabase(4);

async function countReads(work: () => Promise<unknown>): Promise<number> {
  let reads = 0;
  const count = (): void => {
    reads += 1;
  };
  db.on('query', count);
  await work();
  db.off('query', count);
  return reads;
}

describe('the context of a run', () => {
  it('is read once, and again for whoever knows of another ceiling, once for all', async () => {
    const { run_id } = await aRun(db, { budget_ceiling_usd: 1 });
    const contexts = createRunContexts(db);
    const open = (version?: number) => contexts.open(run_id, version);
    expect(await countReads(() => Promise.all([open(), open(), open(0)]))).toBe(1);
    await db('run').where({ run_id }).update({ budget_ceiling_usd: 2, budget_version: 3 });
    expect((await open()).ceilingUsd).toBe(1);
    const reads = await countReads(async () => {
      const [a, b] = await Promise.all([open(3), open(3)]);
      expect([a?.ceilingUsd, b?.ceilingUsd]).toEqual([2, 2]);
    });
    expect(reads).toBe(1);
    expect(await countReads(() => Promise.all([open(), open(2), open(3)]))).toBe(0);
  });

  it('counts the runs that it repeats only where an expression asks for it', async () => {
    const first = await aRun(db);
    const more = { project_id: first.project_id, rerun_of: first.run_id };
    const asks = (input: string) => stepsOf([{ id: 'a', capability: 'x', input: { v: input } }]);
    const attemptOf = async (definition: object) => {
      const { run_id } = await aRun(db, { ...more, ...definition });
      return (await createRunContexts(db).open(run_id)).scope.run.attempt;
    };
    expect(await attemptOf(asks('{{ run.attempt }}'))).toBe(2);
    expect(await attemptOf(asks('try {{ run | json }}'))).toBe(2);
    expect(await attemptOf(asks('{{ run.id }}'))).toBe(1);
  });

  it('says what it was checked against and how deep it is', async () => {
    const specs = { concat: 'sha256:abc' };
    const { run_id } = await aRun(db, { depth: 3, specs });
    expect(await createRunContexts(db).open(run_id)).toMatchObject({ depth: 3, specs, budget_version: 0 });
  });
});
