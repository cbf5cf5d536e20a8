import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { ReviewDecision } from '@capstan/core/contracts/review';
import { actionsOf } from '@capstan/core/review-actions';
import type { StepEnd } from '@capstan/core/workflow-payloads';
import { beforeAll, describe, expect, it } from 'vitest';
import { decideReview, readReview } from '../../../src/db/review/review.ts';
import { finishRun } from '../../../src/db/run/run.ts';
import { endStep, listRunSteps, readStepOutput } from '../../../src/db/step/step.ts';
import { createRunContexts } from '../../../src/parts/definitions/run-context.ts';
import { submitPipeline } from '../../../src/use-cases/pipelines/pipelines.ts';
import { checkDecision } from '../../../src/use-cases/reviews/input.ts';
import { stepOf } from '../../../src/use-cases/run-data/evaluation.ts';
import { executeSubRun } from '../../../src/use-cases/steps/sub-run.ts';
import { aClaim, anEnd, anInstance, aRun, claimAttempt, settleAttempt } from '../../support/factories.ts';
import { aCheckCtx } from '../../support/intake.ts';
import { withoutCapabilities } from '../../support/reviews.ts';
import { stepsOf, useSteps } from '../../support/steps.ts';

const world = useSteps();
const { db } = world;

function aRunOf(step: Omit<StepDefinition, 'id'>, more = {}) {
  return aRun(db, { ...stepsOf([{ id: 'a', ...step }]), project_id: world.projectId(), ...more });
}

function refOf(end: StepEnd): { review_id?: string; run_id?: string } {
  return end.kind === 'waiting' ? (end.ref ?? {}) : {};
}

function failed(code: string, message: string) {
  return {
    kind: 'failed',
    error: { code, message: expect.stringContaining(message) },
  };
}

describe('a step that is a review', () => {
  const review = { title: 'Is it good?', schema: { type: 'object', required: ['mark'] }, timeout: '2h' };

  const asked = async (step: Partial<StepDefinition> = {}) => {
    const run = await aRunOf({ review, input: { at: '{{ job.at }}' }, ...step }, { job: { at: 7 } });
    const worker = world.newWorker();
    const first = await worker.execute(run, 'a');
    const review_id = refOf(first).review_id ?? '';
    const resume = () => worker.execute(run, { step_id: 'a', resumed: true });
    const decide = (decision: ReviewDecision) =>
      decideReview(db, { project_id: run.project_id, review_id, by: 'key_1', version: 1, decision });
    return { run, first, review_id, resume, decide };
  };

  it('asks once, with its input and its schema, until it is due', async () => {
    const { run, first, review_id, resume } = await asked();
    const row = await readReview(db, review_id);
    expect(row).toMatchObject({
      kind: 'step',
      state: 'open',
      reason: 'Is it good?',
      step_id: 'a',
      item: 0,
      run_id: run.run_id,
      payload: {
        input: { at: 7 },
        schema: review.schema,
        optional: false,
        details: { title: 'Is it good?' },
      },
    });
    expect(first).toEqual({ kind: 'waiting', awaiting: 'review', until: row?.due_at, ref: { review_id } });
    expect((row?.due_at.getTime() ?? 0) - (row?.created_at.getTime() ?? 0)).toBeGreaterThan(7_199_000);
    for (const again of [resume(), world.newWorker().execute(run, 'a')]) expect(await again).toEqual(first);
    expect(await db('review').where({ run_id: run.run_id })).toHaveLength(1);
    expect(await listRunSteps(db, run.run_id)).toMatchObject([
      { state: 'waiting', awaiting: 'review', review_id },
    ]);
    expect(await world.eventsOf(run)).toEqual([
      ...['run.queued', 'run.started', 'step.started a', 'step.waiting a'],
    ]);
  });

  it.each([
    ['Title of {{ job.at }}', 'Title of 7'],
    ['{{ (job.at > 5) }}', 'true'],
    ['{{ job.note | default("none") }}: {{ job.at }}{{ job.at }}', 'none: 77'],
    [`{{ job.long }}`, `${'l'.repeat(999)}…`],
  ])('asks under the title that %s gives', async (title, shown) => {
    const job = { at: 7, long: 'l'.repeat(2_000) };
    const run = await aRunOf({ review: { title } }, { job });
    const { review_id = '' } = refOf(await world.newWorker().execute(run, 'a'));
    expect(await readReview(db, review_id)).toMatchObject({
      reason: shown,
      payload: { details: { title: shown } },
    });
  });

  it('asks about each item under a title of its own', async () => {
    const step = { review: { title: '{{ index }}: {{ item.name }}' }, for_each: { items: '{{ job.list }}' } };
    const run = await aRunOf(step, { job: { list: [{ name: 'x' }, { name: 'y' }] } });
    const worker = world.newWorker();
    const asked = [];
    for (const item of [1, 2]) asked.push(refOf(await worker.execute(run, { step_id: 'a', item })));
    const rows = await Promise.all(asked.map(({ review_id = '' }) => readReview(db, review_id)));
    expect(rows.map((row) => row?.reason)).toEqual(['0: x', '1: y']);
  });

  it('fails, with its place, where the title has no value', async () => {
    const run = await aRunOf({ review: { title: 'of {{ job.gone }}' } });
    const end = await world.newWorker().execute(run, 'a');
    expect(end).toMatchObject(failed('expression_unresolved', 'review.title: '));
    expect(await db('review').where({ run_id: run.run_id })).toEqual([]);
  });

  it('takes an answer as its output, once', async () => {
    const { run, resume, decide } = await asked();
    await decide({ action: 'output', output: { mark: 1 } });
    for (const _ of [1, 2]) {
      expect(await resume()).toEqual({ kind: 'succeeded', output: { mark: 1 }, attempt: null });
    }
    expect(await readStepOutput(db, { run_id: run.run_id, step_id: 'a', item: 0 })).toEqual({ mark: 1 });
    expect((await world.eventsOf(run)).slice(-2)).toEqual(['step.reviewed a', 'step.succeeded a']);
  });

  it('asks nothing new when it was decided before its workflow knew of the question', async () => {
    const { run, decide } = await asked();
    await decide({ action: 'output', output: 1 });
    expect(await world.newWorker().execute(run, 'a')).toMatchObject({ kind: 'succeeded', output: 1 });
    expect(await db('review').where({ run_id: run.run_id })).toHaveLength(1);
  });

  it('is skipped, or fails with the note, as a person decides', async () => {
    const skipped = await asked({ optional: true });
    await skipped.decide({ action: 'skip' });
    expect(await skipped.resume()).toEqual({ kind: 'skipped' });
    const rejected = await asked();
    await rejected.decide({ action: 'reject', note: 'too dark' });
    expect(await rejected.resume()).toMatchObject(failed('review_rejected', 'too dark'));
  });

  it.each([
    ['fails', undefined, failed('step_timeout', 'within 2h')],
    ['is skipped', 'skip', { kind: 'skipped' }],
  ] as const)('%s without a decision in time, also while maintenance is away', async (_, on_timeout, end) => {
    const { review_id, resume } = await asked({ review: { ...review, ...(on_timeout && { on_timeout }) } });
    await db('review')
      .where({ review_id })
      .update({ due_at: db.raw('clock_timestamp()') });
    expect(await resume()).toMatchObject(end);
    expect(await readReview(db, review_id)).toMatchObject({ state: 'expired' });
  });

  it('fails before anybody is asked when its input cannot be worked out', async () => {
    const run = await aRunOf({ review, input: { at: '{{ job.none }}' } });
    const end = await world.newWorker().execute(run, 'a');
    expect(end).toMatchObject(failed('expression_unresolved', 'job.none'));
    expect(await db('review').where({ run_id: run.run_id })).toEqual([]);
  });

  it('takes an answer that its schema allows, and no other; corrections are for ladders', async () => {
    const { review_id } = await asked({ optional: true });
    const row = await readReview(db, review_id);
    if (row === undefined) throw new Error('no review');
    expect(actionsOf(row)).toEqual(['output', 'skip', 'reject']);
    expect(actionsOf({ ...row, payload: {} })).toEqual(['output', 'reject']);
    const ctx = withoutCapabilities(db);
    await checkDecision(ctx, row, { action: 'output', output: { mark: 2 } });
    await expect(checkDecision(ctx, row, { action: 'output', output: { mar: 2 } })).rejects.toMatchObject({
      code: 'request_invalid',
      message: expect.stringContaining('mark'),
    });
  });
});

/** The runs below a run, with their jobs. */
function subRunsOf({ run_id }: { readonly run_id: string }) {
  return db('run')
    .join('job', 'job.job_id', 'run.job_id')
    .where({ parent_run_id: run_id })
    .select('run.run_id', 'run.project_id', 'parent_step_id', 'parent_item', 'parent_revision')
    .select('pipeline', 'version', 'job.body as job', 'priority', 'budget_ceiling_usd', 'depth')
    .select('parent_workflow_id');
}

describe('a step that is a run', () => {
  beforeAll(async () => {
    const steps = [{ id: 'x', wait: '1s' }];
    const texts = { type: 'object', properties: { n: { type: 'string' } } };
    for (const definition of [
      { pipeline: 'reel', version: '1.0', steps },
      { pipeline: 'strict', version: '1.0', steps, job_schema: texts },
    ]) {
      const text = JSON.stringify(definition);
      await submitPipeline(aCheckCtx(db), world.projectId(), { text, contentType: 'application/json' });
    }
  });
  const step = { pipeline: 'reel@1.0', input: { n: '{{ job.n }}' }, budget_ceiling_usd: 5 };
  const begun = async (change = {}, more = {}) => {
    const run = await aRunOf({ ...step, ...change }, { job: { n: 1 }, priority: 'batch', ...more });
    const worker = world.newWorker();
    const first = await worker.execute(run, 'a');
    return { run, worker, first, sub: refOf(first).run_id ?? '' };
  };
  const endSub = (run_id: string, end: object) =>
    finishRun(db, { run_id, state: 'succeeded', output: null, error: null, step_ids: [], ...end });

  it('starts it with its input as job, once, and waits without an end', async () => {
    const { run, first, sub } = await begun({}, { budget_ceiling_usd: 3, depth: 2 });
    expect(await subRunsOf(run)).toEqual([
      {
        run_id: sub,
        parent_step_id: 'a',
        parent_item: 0,
        parent_revision: 0,
        project_id: run.project_id,
        pipeline: 'reel',
        version: '1.0',
        job: { n: 1 },
        priority: 'batch',
        budget_ceiling_usd: '5.000000000000',
        depth: 3,
        parent_workflow_id: `trailer/${run.run_id}`,
      },
    ]);
    expect(first).toEqual({ kind: 'waiting', awaiting: 'run', until: null, ref: { run_id: sub } });
    const other = world.newWorker();
    expect(await other.execute(run, { step_id: 'a', resumed: true })).toEqual(first);
    expect(await other.execute(run, 'a')).toEqual(first);
    expect(await subRunsOf(run)).toHaveLength(1);
    expect(await listRunSteps(db, run.run_id)).toMatchObject([{ awaiting: 'run', sub_run_id: sub }]);
  });

  it('has no ceiling by the limit of one call, or of the run that starts it', async () => {
    const definition = stepsOf([{ id: 'a', pipeline: 'reel@1.0' }], { defaults: { budget_ceiling_usd: 1 } });
    const project_id = world.projectId();
    const run = await aRun(db, { ...definition, project_id, budget_ceiling_usd: 3 });
    await world.newWorker().execute(run, 'a');
    expect(await subRunsOf(run)).toMatchObject([{ budget_ceiling_usd: null }]);
  });

  it('is asked to cancel when the step was given up while it was started', async () => {
    const run = await aRunOf(step, { job: { n: 1 } });
    const context = await createRunContexts(db).open(run.run_id);
    const key = { run_id: run.run_id, step_id: 'a', item: 0, revision: 0 };
    const { ctx } = world.newWorker();
    const find: typeof ctx.definitions.find = async (...asked) => {
      await endStep(db, key, { state: 'cancelled', error: { code: 'run_cancelled', message: 'given up' } });
      return ctx.definitions.find(...asked);
    };
    const unit = { context, step: stepOf(context, 'a'), key };
    const end = await executeSubRun({ ...ctx, definitions: { ...ctx.definitions, find } }, unit, undefined);
    expect(end).toEqual({ kind: 'cancelled' });
    const states = await db('run').where({ parent_run_id: run.run_id }).select('state');
    expect(states).toEqual([{ state: 'cancelling' }]);
  });

  it('is the same run when a worker was killed before it could report it', async () => {
    const { run, sub } = await begun();
    await db('step').where({ run_id: run.run_id }).delete();
    expect(refOf(await world.newWorker().execute(run, 'a'))).toEqual({ run_id: sub });
  });

  it('has the output of that run, and costs what it and the runs below it have cost', async () => {
    const { run, worker, sub } = await begun();
    const { project_id } = run;
    const below = await aRun(db, { project_id, parent_run_id: sub, parent_step_id: 'x', parent_item: 0 });
    const instance = await anInstance(db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 9 });
    for (const run_id of [sub, below.run_id]) {
      const claim = aClaim({ run_id, project_id }, instance, { reserved_nano: 9n });
      await claimAttempt(db, claim);
      await settleAttempt(db, anEnd(claim, { settled_nano: 4n }));
    }
    await endSub(sub, { output: { film: 'x\u0000' } });
    for (const _ of [1, 2]) {
      expect(await worker.execute(run, { step_id: 'a', resumed: true })).toMatchObject({
        kind: 'succeeded',
        output: { film: 'x\u0000' },
      });
    }
    expect(await listRunSteps(db, run.run_id)).toMatchObject([{ state: 'succeeded', cost_nano: '8' }]);
  });

  it.each([
    [
      'has failed',
      { state: 'failed', error: { code: 'step_failed', message: 'step x: no' } },
      'step_failed',
      'step x: no',
    ],
    ['was cancelled', { state: 'cancelled' }, 'run_cancelled', 'ended as cancelled'],
  ])('fails when that run %s, with the run and the reason', async (_, end, code, message) => {
    const { run, worker, sub } = await begun();
    await endSub(sub, end);
    const error = { details: { run_id: sub, code } };
    const failure = failed('sub_run_failed', message);
    expect(await worker.execute(run, { step_id: 'a', resumed: true })).toMatchObject({
      ...failure,
      error: { ...failure.error, ...error },
    });
  });

  it('fails when that run is refused, and starts nothing', async () => {
    const run = await aRunOf({ ...step, pipeline: 'strict@1.0' }, { job: { n: 1 } });
    const end = await world.newWorker().execute(run, 'a');
    expect(end).toMatchObject(failed('job_invalid', 'strict@1.0: '));
    expect(await subRunsOf(run)).toEqual([]);
    expect(await world.eventsOf(run)).toEqual(['run.queued', 'run.started', 'step.failed a']);
  });
});

describe('a step that sets values', () => {
  it('has them as its output, in any worker, and makes no call', async () => {
    const run = await aRunOf(
      { set: { at: '{{ job.at }}', twice: ['{{ job.at * 2 }}'] } },
      { job: { at: 7 } },
    );
    const end = { kind: 'succeeded', output: { at: 7, twice: [14] } };
    expect(await world.newWorker().execute(run, 'a')).toMatchObject(end);
    expect(await world.newWorker().execute(run, 'a')).toMatchObject(end);
    expect(await world.eventsOf(run)).toEqual([
      ...['run.queued', 'run.started', 'step.started a', 'step.succeeded a'],
    ]);
    expect(await listRunSteps(db, run.run_id)).toMatchObject([
      { state: 'succeeded', attempts: 0, cost_nano: '0' },
    ]);
  });

  it('fails when an expression has no value', async () => {
    const run = await aRunOf({ set: { at: '{{ job.at }}' } });
    expect(await world.newWorker().execute(run, 'a')).toMatchObject(
      failed('expression_unresolved', 'job.at does not exist'),
    );
  });

  it('stores nothing in a run that has ended', async () => {
    const run = await aRunOf({ set: { at: 1 } });
    const worker = world.newWorker();
    await finishRun(db, {
      run_id: run.run_id,
      state: 'cancelled',
      error: null,
      output: undefined,
      step_ids: [],
    });
    expect(await worker.execute(run, 'a')).toEqual({ kind: 'cancelled' });
    expect(await db('step').where({ run_id: run.run_id, state: 'succeeded' })).toEqual([]);
  });
});
