import { parseExactJson } from '@capstan/core/contracts/exact-json';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { beforeAll, describe, expect, it } from 'vitest';
import { anInstance as aSnapshot } from '../../../packages/core/test/routing/a-snapshot.ts';
import { readDelivery } from '../../../src/db/run/run-delivery.ts';
import { createStepResults } from '../../../src/parts/definitions/step-results.ts';
import { submitPipeline } from '../../../src/use-cases/pipelines/pipelines.ts';
import { type SubRunOrder, submitSubRun } from '../../../src/use-cases/steps/sub-run.ts';
import { useDatabase } from '../../support/database.ts';
import { anInstance, aRun, type StoredRun } from '../../support/factories.ts';
import { aCheckCtx, aFleet, anIntakeCtx } from '../../support/intake.ts';

const { db } = useDatabase();
let parent: StoredRun;
beforeAll(async () => {
  parent = await aRun(db);
  await anInstance(db, { name: 'x' });
  const job_schema = { type: 'object', properties: { n: { type: 'integer' } } };
  const definition = {
    pipeline: 'below',
    steps: [{ id: 'a', capability: 'x' }],
    job_schema,
    budget_ceiling_usd: 2,
  };
  for (const version of ['1', '2']) {
    const text = JSON.stringify({ ...definition, version });
    await submitPipeline(aCheckCtx(db), parent.project_id, { text, contentType: 'application/json' });
  }
});

async function keyed(pipeline: string, key: string): Promise<void> {
  const concurrency = { key, limit: 1, on_limit: 'reject' };
  const definition = { pipeline, version: '1', steps: [{ id: 'a', capability: 'x' }], concurrency };
  await submitPipeline(aCheckCtx(db), parent.project_id, {
    text: JSON.stringify(definition),
    contentType: 'application/json',
  });
}

function submit(order: Partial<SubRunOrder> = {}) {
  const instances = [aSnapshot('only', { duration_ms: 10, success_count: 9 })];
  const fleet = aFleet({ instances, priorMs: 1 });
  const ctx = anIntakeCtx(db, { fleet, mostOpen: 1 });
  const media = { exists: async () => true } as never; // no step of these tests names a file
  return submitSubRun(
    { ...ctx, results: createStepResults(db), media },
    {
      parent: { run_id: parent.run_id, step_id: 'a', item: 0, revision: 0 },
      isItem: false,
      project_id: parent.project_id,
      reference: 'below@1',
      job: { n: 1 },
      priority: 'interactive',
      ceilingUsd: 5,
      depth: 1,
      parentWorkflowId: 'run/p/parent',
      ...order,
    },
  );
}
function at(item: number): Partial<SubRunOrder> {
  return {
    parent: { run_id: parent.run_id, step_id: 'a', item, revision: 0 },
  };
}

describe('a step that starts a run', () => {
  it('starts one, however often and at once it is executed', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => submit()));
    const ids = new Set(answers.map((answer) => ('run_id' in answer ? answer.run_id : answer)));
    expect(ids.size).toBe(1);
    const [run_id] = ids;
    expect(await db('run').where({ parent_run_id: parent.run_id }).select('*')).toMatchObject([
      {
        run_id,
        state: 'queued',
        version: '1',
        dispatch: [{ capability: 'x', how: 'inline', code: 'short' }],
        priority: 'interactive',
        depth: 1,
        parent_step_id: 'a',
        parent_item: 0,
        parent_workflow_id: 'run/p/parent',
      },
    ]);
    expect(await db('job').count('* as n').first()).toEqual({ n: '2' }); // its own and the parent's
  });

  it('starts one per item, under the lower ceiling, of the version that an alias means', async () => {
    const answer = await submit({ ...at(1), reference: 'below@latest', ceilingUsd: 1 });
    const row = await db('run')
      .where('run_id', 'run_id' in answer ? answer.run_id : '')
      .first('*');
    expect([row?.version, Number(row?.budget_ceiling_usd)]).toEqual(['2', 1]);
    const free = await submit({ ...at(2), ceilingUsd: null });
    const other = await db('run')
      .where('run_id', 'run_id' in free ? free.run_id : '')
      .first('*');
    expect(Number(other?.budget_ceiling_usd)).toBe(2);
  });

  it('starts it in the turn of a run above it that has its key', async () => {
    await keyed('same', 'k');
    await keyed('other', 'l');
    await db('run')
      .where({ run_id: parent.run_id })
      .update({ concurrency_key: 'k', concurrency_limit: 1, admitted_at: new Date() });
    const start = async (run_id: string, item: number, reference: string) => {
      const answer = await submit({ parent: { run_id, step_id: 'a', item, revision: 0 }, reference });
      return db('run')
        .where('run_id', 'run_id' in answer ? answer.run_id : '')
        .first('run_id', 'concurrency_key');
    };
    const below = await start(parent.run_id, 3, 'other@1');
    expect(below.concurrency_key).toBe('l');
    expect(await start(parent.run_id, 4, 'same@1')).toMatchObject({ concurrency_key: null });
    expect(await start(below.run_id, 1, 'same@1')).toMatchObject({ concurrency_key: null });
    expect(await start(parent.run_id, 5, 'other@1')).toBeUndefined();
  });

  it.each<[string, Partial<SubRunOrder>, string]>([
    ['of a pipeline that there is not', { reference: 'nothing@1' }, 'not_found'],
    ['of a version that there is not', { reference: 'below@9' }, 'not_found'],
    ['with a job that does not fit', { job: { n: 'one' } }, 'job_invalid'],
    ['too deep', { depth: 6 }, 'definition_invalid'],
  ])('fails when it is %s', async (_, order, code) => {
    expect(await submit({ ...at(9), ...order })).toEqual({
      error: { code, message: expect.stringMatching(/^(below|nothing)@/) },
    });
    expect(await db('run').where({ parent_item: 9 })).toEqual([]);
  });

  it('knows the unit above it where it is an item, or below one', async () => {
    const start = async (order: Partial<SubRunOrder>) => {
      const answer = await submit(order);
      const run_id = 'run_id' in answer ? answer.run_id : '';
      return { run_id, parent: (await readDelivery(db, run_id))?.parent };
    };
    const item = await start({ ...at(20), isItem: true });
    expect(item.parent).toEqual({ workflow_id: 'run/p/parent', step_id: 'a', item: 20 });
    const below = { run_id: item.run_id, step_id: 'b', item: 0, revision: 0 };
    const { parent: above } = await start({ parent: below, parentWorkflowId: 'p/item', depth: 2 });
    expect(above).toEqual({ workflow_id: 'p/item', step_id: 'b', item: 0 });
    expect(await start(at(21))).toMatchObject({ parent: null }); // a round
  });

  it('gives it a job with numbers as an instance has written them', async () => {
    const job = parseExactJson('{"n":7615917337495251231,"of":[{"at":1700000000.123456789}]}') as JsonObject;
    await submit({ ...at(99), job });
    const { rows } = await db.raw(
      `select j.body::text from run r join job j using (job_id) where r.parent_run_id = ? and r.parent_item = 99`,
      [parent.run_id],
    );
    expect(rows).toEqual([{ body: '{"n":7615917337495251231,"of":[{"at":1700000000.123456789}]}' }]);
  });
});
