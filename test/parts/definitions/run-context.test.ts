import { describe, expect, it } from 'vitest';
import { insertRuns } from '../../../src/db/run/run.ts';
import { createRunContexts } from '../../../src/parts/definitions/run-context.ts';
import { newId } from '../../../src/parts/ids.ts';
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
  it('is read once, and again for a caller that knows another ceiling, once for all', async () => {
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

  it('is not kept with any number of long definitions: those of runs before make room', async () => {
    const contexts = createRunContexts(db);
    const input = { text: 'x'.repeat(7 * 1_048_576) };
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) {
      const { run_id } = await aRun(db, stepsOf([{ id: `s${n}`, capability: 'x', input }]));
      ids.push(run_id);
      await contexts.open(run_id);
    }
    const [first = '', , , , , last = ''] = ids;
    // Another run of the same definition, which is compiled again or not.
    const compiledOf = async (like: string) => {
      const { digest, project_id, job_id } = await db('run').where({ run_id: like }).first('*');
      const run = {
        run_id: newId('run'),
        digest,
        project_id,
        job_id,
        pipeline: 'p',
        version: '1',
        labels: {},
      };
      await insertRuns(db, { runs: [{ ...run, priority: 'standard', budget_ceiling_usd: null }] });
      return (await contexts.open(run.run_id)).compiled;
    };
    expect(await compiledOf(last)).toBe((await contexts.open(last)).compiled);
    expect(await compiledOf(first)).not.toBe((await contexts.open(first)).compiled);
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

  it('has the specs of its check and its depth', async () => {
    const specs = { concat: 'sha256:abc' };
    const { run_id } = await aRun(db, { depth: 3, specs });
    expect(await createRunContexts(db).open(run_id)).toMatchObject({ depth: 3, specs, budget_version: 0 });
  });
});
