import { CancelSource } from '@capstan/core/cancellation';
import { Registration } from '@capstan/core/contracts/capability';
import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import { newLadder } from '@capstan/core/ladder/ladder';
import { startLadder } from '@capstan/core/ladder/machine';
import type { FailedStep } from '@capstan/core/ladder/types';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ConfigSchema } from '../../../src/config.ts';
import type { WorkerCtx } from '../../../src/context.ts';
import type { StepKey } from '../../../src/db/attempt/attempt.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { insertEscalation } from '../../../src/db/escalation/escalation.ts';
import { storeStepRevision } from '../../../src/db/step/step-revision.ts';
import { createInFlightSteps } from '../../../src/parts/calls/in-flight-steps.ts';
import { createRunContexts } from '../../../src/parts/definitions/run-context.ts';
import { createStepResults, toAnswer } from '../../../src/parts/definitions/step-results.ts';
import { newId } from '../../../src/parts/ids.ts';
import { storeLadder } from '../../../src/use-cases/escalation/ladder/stored-ladder.ts';
import type { StepControl, StepRequest, UnitInBatch } from '../../../src/use-cases/steps/call.ts';
import { executeRevision, executeStep } from '../../../src/use-cases/steps/execution.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aProject, aRun, type StoredRun } from '../../support/factories.ts';
import { answer, type Instance, startInstance } from '../../support/fleet.ts';
import { createRouterRuntime } from '../../support/router-runtime.ts';
import { aloneInBatch } from '../../support/steps.ts';
import { waitFor } from '../../support/wait.ts';

let database: TestDatabase;
let db: Db;
let router: Awaited<ReturnType<typeof createRouterRuntime>>;
let instance: Instance;
let counted: Instance;

beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase(database.url, 4);
  const config = ConfigSchema.parse({ DATABASE_URL: database.url, LOG_LEVEL: 'silent' });
  router = await createRouterRuntime(config, pino({ level: 'silent' }));
  const { project_id } = await aProject(db);
  const registry = {
    request: async <Body>(_method: string, _path: string, body: unknown) => {
      const answered = await router.registry.register(
        project_id,
        Registration.parse({ ...Object(body), shared_with: 'all' }),
      );
      return { status: 201, headers: new Headers(), body: answered as unknown as Body };
    },
  };
  const numbers = { type: 'object', properties: { n: { type: 'integer' } } };
  instance = await startInstance(registry, { name: 'even', output: numbers });
  counted = await startInstance(registry, { name: 'counted', input: numbers });
  await waitFor('the router to know them', () =>
    ['even', 'counted'].every((name) => router.fleet.all(name).length > 0),
  );
});
beforeEach(() => {
  instance.handle = (_exec, response) => answer(response, 422, { ok: false, error: 'n must be even' });
});
afterAll(async () => {
  await instance?.stop();
  await counted?.stop();
  await router?.close();
  await db?.destroy();
  await database?.drop();
});

const place = { escalation_id: 'esc_1', transition: 0, command: { type: 'execute', level: 0 } } as const;
type OpenForStep = WorkerCtx['openForStep'];

const killed: OpenForStep = () => Promise.reject(new Error('killed'));
function control(round: number) {
  return { round, remainingMs: 20_000, signal: new CancelSource() };
}

function inBatch(follows: Partial<UnitInBatch> = {}): StepControl {
  return { ...control(1), batch: { ...aloneInBatch, ...follows } };
}

async function aFailingRun(step: Partial<StepDefinition> = {}) {
  const steps = [{ id: 'a', capability: 'even', input: { n: 1 }, ...step }];
  const run = await aRun(db, { definition: { steps } });
  return { run, first: { run_id: run.run_id, step_id: 'a', revision: 0, escalates: true } };
}

function stepsWith(openForStep: OpenForStep) {
  const exists = () => Promise.reject(new Error('no input of these tests names a file'));
  const ctx = {
    ...router.ctx,
    db,
    contexts: createRunContexts(db),
    results: createStepResults(db),
    inFlightSteps: createInFlightSteps(),
    openForStep,
    media: { exists } as Partial<WorkerCtx['media']>,
  } as WorkerCtx;
  return {
    executeStep: (request: StepRequest, how: StepControl) => executeStep(ctx, request, how),
    executeRevision: (request: StepKey, how: StepControl) => executeRevision(ctx, request, how),
  };
}

async function stateOf(runId: string): Promise<string> {
  return (await db('step').where({ run_id: runId, step_id: 'a' }).first('state'))?.state;
}

test('a worker killed between the failure and its escalation: the next opens it and sends nothing', async () => {
  const { run, first } = await aFailingRun();
  const before = instance.execs.length;
  await expect(stepsWith(killed).executeStep(first, control(1))).rejects.toThrow('killed');
  expect(await stateOf(run.run_id)).toBe('retrying');
  const told: FailedStep[] = [];
  const { executeStep } = stepsWith(async (failed) => {
    told.push(failed);
    return place;
  });
  const error = { code: 'input_rejected', message: 'HTTP 422: n must be even', status: 422 };
  expect(await executeStep(first, control(2))).toEqual({ kind: 'escalated', error, place });
  expect(told).toMatchObject([
    {
      run_id: run.run_id,
      step_id: 'a',
      item: 0,
      revision: 0,
      project_id: run.project_id,
      pipeline: 'trailer',
      capability: 'even',
      tags: [],
      input: { n: 1 },
      failure: error,
      policy: { enabled: true, repair: 'propose', needs_person: false },
    },
  ]);
  expect(instance.execs.length - before).toBe(1);
});

test('a failure that is held is not asked for again when a batch comes twice: the queue continues with it', async () => {
  const { first } = await aFailingRun();
  const before = instance.execs.length;
  await expect(stepsWith(killed).executeStep(first, inBatch())).rejects.toThrow('killed');
  const { executeStep } = stepsWith(async () => place);
  expect(await executeStep(first, inBatch())).toMatchObject({ kind: 'retry' });
  const end = await executeStep({ ...first, again: true }, control(1));
  expect(end).toMatchObject({ kind: 'escalated', error: { code: 'input_rejected' } });
  expect(instance.execs.length - before).toBe(1);
});

test.each([
  ['whose run cannot escalate', {}, { escalates: false }, 'input_rejected'],
  ['whose input cannot be worked out', { input: { n: '{{ job.none }}' } }, {}, 'expression_unresolved'],
])('a step %s ends with its failure', async (_, step, change, code) => {
  const { run, first } = await aFailingRun(step);
  const { executeStep } = stepsWith(killed);
  expect(await executeStep({ ...first, ...change }, control(1))).toMatchObject({
    kind: 'failed',
    error: { code },
  });
  expect(await stateOf(run.run_id)).toBe('failed');
});

test('any end of a correction but a success leaves the step open', async () => {
  const { run, first } = await aFailingRun({ retry: { max: 0 } });
  const { executeStep, executeRevision } = stepsWith(async () => place);
  await executeStep(first, control(1));
  const correction = { run_id: run.run_id, step_id: 'a', item: 0, revision: 0 };
  expect(await executeRevision(correction, control(1))).toMatchObject({ kind: 'failed' });
  expect(await stateOf(run.run_id)).toBe('retrying');

  const stopped = control(1);
  instance.handle = () => stopped.signal.abort('cancelled');
  expect(await executeRevision(correction, stopped)).toEqual({ kind: 'cancelled' });
  expect(await stateOf(run.run_id)).toBe('retrying');

  instance.handle = (_exec, response) => void response.destroy();
  const lost = await executeRevision(correction, control(1));
  expect(lost).toMatchObject({ kind: 'unknown', error: { code: 'delivery_unknown' } });
  expect(await stateOf(run.run_id)).toBe('retrying');
});

/** A ladder at its beginning; each call stores one more correction of it. */
async function aLadder({ run_id, project_id }: StoredRun) {
  const escalation_id = newId('escalation');
  const step = { run_id, step_id: 'a', item: 0 };
  await insertEscalation(db, {
    escalation_id,
    project_id,
    job_type: 'even',
    prompt: 'p',
    context: { n: 1 },
    step,
    caller: null,
    repo_context: '',
    signals: [],
    result_schema: null,
    previous_id: null,
    max_usd: null,
    escalation_level: 0,
    ...storeLadder(newLadder(startLadder({ start_level: 0, history: [], advice: [] }))),
    fingerprint: null,
    model_spec: { level: 0, label: 'static template', capability: null, model: null },
  });
  let choice = 0;
  return async () => {
    const correction = { input: { n: 2 }, source: 'repair', escalation_id, transition: 0, choice };
    choice += 1;
    return { ...step, revision: (await storeStepRevision(db, { ...step, ...correction })).revision };
  };
}

test.each([0, 2])('an answer to a correction is not asked for again (retry.max %i)', async (max) => {
  const { run, first } = await aFailingRun({ retry: { max } });
  const { executeStep, executeRevision } = stepsWith(async () => place);
  await executeStep(first, control(1));
  const aCorrection = await aLadder(run);
  const before = instance.execs.length;
  for (const answers of [
    { status: 422, body: { ok: false, error: 'n must be odd' }, code: 'input_rejected' },
    { status: 200, body: { ok: true, output: 2 }, code: 'output_invalid' },
  ]) {
    const revision = await aCorrection();
    instance.handle = (_exec, response) => answer(response, answers.status, answers.body);
    const told = await executeRevision(revision, control(1));
    expect(told).toMatchObject({ kind: 'failed', error: { code: answers.code } });
    expect(await executeRevision(revision, control(1))).toEqual(told);
  }
  expect(instance.execs.length - before).toBe(2);
  instance.handle = (_exec, response) => answer(response, 200, { ok: true, output: { n: 2 } });
  expect(await executeRevision(await aCorrection(), control(1))).toMatchObject({ kind: 'succeeded' });
  expect(instance.execs.length - before).toBe(3);
});

test('a correction that time may cure is sent again', async () => {
  const { run, first } = await aFailingRun({ retry: { max: 2 } });
  const { executeStep, executeRevision } = stepsWith(async () => place);
  await executeStep(first, control(1));
  const correction = await (await aLadder(run))();
  instance.handle = (_exec, response) => answer(response, 500, { ok: false, error: 'try later' });
  expect(await executeRevision(correction, control(1))).toMatchObject({ kind: 'retry' });
  instance.handle = (_exec, response) => answer(response, 200, { ok: true, output: { n: 2 } });
  expect(await executeRevision(correction, control(1))).toMatchObject({ kind: 'succeeded' });
});

test('an item that fails for real escalates by itself', async () => {
  const steps = [{ id: 'a', capability: 'even', for_each: { items: [2, 1] }, input: { n: '{{ item }}' } }];
  const run = await aRun(db, { definition: { steps } });
  const told: FailedStep[] = [];
  const { executeStep } = stepsWith(async (failed) => {
    told.push(failed);
    return place;
  });
  const request = { run_id: run.run_id, step_id: 'a', item: 2, revision: 0, escalates: true };
  expect(await executeStep(request, control(1))).toMatchObject({ kind: 'escalated' });
  expect(await executeStep(request, control(2))).toMatchObject({ kind: 'escalated' });
  expect(told).toMatchObject([
    { item: 2, input: { n: 1 } },
    { item: 2, input: { n: 1 } },
  ]);
});

test('a plain step asks the database for its run once, and else only for its claim and its end', async () => {
  const steps: StepDefinition[] = [
    { id: 'a', capability: 'even', input: {} },
    { id: 'b', capability: 'even', input: { n: '{{ steps.a.output.n ?? 2 }}' } },
  ];
  const run = await aRun(db, { definition: { steps } });
  instance.handle = (_exec, response) => answer(response, 200, { ok: true, output: { n: 2 } });
  const { executeStep } = stepsWith(killed);
  const asked: string[] = [];
  const note = ({ sql }: { readonly sql: string }): void => void asked.push(sql);
  db.on('query', note);
  for (const step_id of ['a', 'b']) {
    const request = { run_id: run.run_id, step_id, revision: 0, escalates: true };
    expect(await executeStep(request, control(1))).toMatchObject({ kind: 'succeeded' });
  }
  db.off('query', note);
  expect(asked).toEqual([expect.stringContaining('run.started')]);
});

test.each([
  [true, 'failed', 'failed'],
  [false, 'retry', undefined],
])('no instance takes what it follows; that was stored: %s', async (isStored, kind, state) => {
  const steps = [
    { id: 'b', capability: 'even' },
    { id: 'a', capability: 'counted', input: { n: '{{ steps.b.output.n }}' } },
  ];
  const run = await aRun(db, { definition: { steps } });
  const answers = new Map([['b', toAnswer({ n: 'three' }, 0)]]);
  const end = await stepsWith(killed).executeStep(
    { run_id: run.run_id, step_id: 'a', revision: 0 },
    inBatch({ answers, stored: Promise.resolve(isStored) }),
  );
  expect([end.kind, await stateOf(run.run_id)]).toEqual([kind, state]);
});
