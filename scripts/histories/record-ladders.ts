/** Runs whose steps are refused their input, with what ladders and people do about it. */
import type { Escalation } from '@capstan/core/contracts/escalation';
import type { Review } from '@capstan/core/contracts/review';
import { aloneWorkflowId, ladderWorkflowId } from '@capstan/core/workflow-names';
import { connectDatabase } from '../../src/db/connect.ts';
import { answer, echo, type Handler, startInstance } from '../../test/support/fleet.ts';
import { decide, reviewOf } from '../../test/support/reviews.ts';
import { waitFor } from '../../test/support/wait.ts';
import { type FeatureRecorders, type Recording, step } from './recording.ts';

const refused: Handler = (exec, response) =>
  exec.input.n === 5 ? echo(exec, response) : answer(response, 422, { ok: false, error: 'n must be 5' });

/** Not remembered, so that every run here asks. */
const corrected = { action: 'edit', input: { n: 5 }, remember: false } as const;

async function recordRepaired(recording: Recording): Promise<void> {
  const { submit, keepBoth } = recording;
  const strict = await startInstance(recording, {
    name: 'strict',
    input: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  });
  const run = await submit([
    { ...step('first', { input: { n: '5' }, escalate: { repair: 'apply' } }), capability: 'strict' },
    step('second', { depends_on: ['first'] }),
  ]);
  await keepBoth('repaired', run);
  await strict.stop();
}

async function recordApproved(recording: Recording): Promise<void> {
  const { submit, keepWorkflow, keepBoth, instance } = recording;
  instance.handle = refused;
  const run = await submit([
    step('first', { input: { n: 1 } }),
    step('second', { depends_on: ['first'], input: { n: 5 } }),
  ]);
  await decide(recording, await reviewOf(recording, run.run_id, 'first'), corrected);
  await keepBoth('approved', run);
  await keepWorkflow('approved-round', ladderWorkflowId(run, { step_id: 'first', item: 0, round: 2 }));
  instance.handle = echo;
}

async function recordRejected(recording: Recording): Promise<void> {
  const { submit, keep, instance } = recording;
  instance.handle = refused;
  const run = await submit([step('first', { input: { n: 2 } }), step('second', { input: { n: 5 } })]);
  await decide(recording, await reviewOf(recording, run.run_id, 'first'), { action: 'reject' });
  await keep('rejected', run.run_id);
  instance.handle = echo;
}

async function recordSkipped(recording: Recording): Promise<void> {
  const { submit, keep, instance } = recording;
  instance.handle = refused;
  const first = step('first', { input: { n: 3 }, optional: true });
  const run = await submit([
    first,
    step('second', { depends_on: ['first'] }),
    step('third', { input: { n: 5 } }),
  ]);
  await decide(recording, await reviewOf(recording, run.run_id, 'first'), { action: 'skip' });
  await keep('skipped', run.run_id);
  instance.handle = echo;
}

async function recordCancelledInReview(recording: Recording): Promise<void> {
  const { submit, keep, request, instance } = recording;
  instance.handle = refused;
  const run = await submit([step('first', { input: { n: 4 } })]);
  await reviewOf(recording, run.run_id, 'first');
  await request('POST', `/v1/runs/${run.run_id}/cancel`, {});
  await keep('cancelled-in-review', run.run_id);
  instance.handle = echo;
}

async function recordCancelledInLadder(recording: Recording): Promise<void> {
  const { submit, keep, keepWorkflow, request, instance } = recording;
  const before = instance.execs.length;
  instance.handle = (exec, response) => (exec.input.n === 5 ? undefined : refused(exec, response));
  const run = await submit([step('first', { input: { n: 6 } })]);
  await decide(recording, await reviewOf(recording, run.run_id, 'first'), corrected);
  await waitFor('the corrected call', () => instance.execs.slice(before).some(({ input }) => input.n === 5));
  await request('POST', `/v1/runs/${run.run_id}/cancel`, {});
  await keep('cancelled-in-ladder', run.run_id);
  await keepWorkflow(
    'cancelled-in-ladder-round',
    ladderWorkflowId(run, { step_id: 'first', item: 0, round: 2 }),
  );
  instance.handle = echo;
}

async function recordExpired(recording: Recording): Promise<void> {
  const { submit, keep, instance, databaseUrl } = recording;
  instance.handle = refused;
  const run = await submit([step('first', { input: { n: 7 } })]);
  const { review_id } = await reviewOf(recording, run.run_id, 'first');
  const db = connectDatabase(databaseUrl, 1);
  await db('review').where({ review_id }).update({ due_at: db.fn.now() });
  await db.destroy();
  await keep('expired', run.run_id);
  instance.handle = echo;
}

async function recordAlone(recording: Recording): Promise<void> {
  const { keepWorkflow, request } = recording;
  const job = { job_type: 'title', prompt: 'a title for the trailer' };
  const { body } = await request<Escalation>('POST', '/v1/escalations', job);
  const path = `/v1/escalations/${body.escalation_id}`;
  const asked = await waitFor('the ladder to ask a person', async () => {
    const { body: ladder } = await request<Escalation>('GET', path);
    return ladder.state === 'in_review' && ladder.review_id;
  });
  const { body: review } = await request<Review>('GET', `/v1/reviews/${asked}`);
  await decide(recording, review, { action: 'output', output: 'Night', remember: false });
  await keepWorkflow('alone-ladder', aloneWorkflowId(body.escalation_id));
}

async function recordAdvised(recording: Recording): Promise<void> {
  const { submit, keepBoth, instance } = recording;
  instance.handle = refused;
  const model = await startInstance(recording, { name: 'model.fast' });
  model.handle = (exec, response) => {
    const asksAdvice = JSON.stringify(exec.input.response_schema).includes('suggested_executor_level');
    const json = asksAdvice
      ? { instructions: 'set n to 5', suggested_executor_level: 1 }
      : { input: { n: 5 } };
    answer(response, 200, { ok: true, output: { json, model: 'small', finish_reason: 'stop' } });
  };
  const run = await submit([step('first', { input: { n: 9 } })]);
  await keepBoth('advised', run);
  await model.stop();
  instance.handle = echo;
}

/** The steps fail in different ways: of two ladders with one failure the second waits for what the first learns. */
async function recordTwoReviews(recording: Recording): Promise<void> {
  const { submit, keep, instance } = recording;
  instance.handle = refused;
  const other = await startInstance(recording, { name: 'other' });
  other.handle = (exec, response) =>
    exec.input.n === 5
      ? echo(exec, response)
      : answer(response, 422, { ok: false, error: 'a name is missing' });
  const run = await submit([
    step('first', { input: { n: 11 } }),
    { ...step('second', { input: { n: 12 } }), capability: 'other' },
  ]);
  const reviews = await Promise.all(['first', 'second'].map((id) => reviewOf(recording, run.run_id, id)));
  for (const review of reviews.toReversed()) await decide(recording, review, corrected);
  await keep('two-reviews', run.run_id);
  await other.stop();
  instance.handle = echo;
}

/** The workflow knows of the pause when the step fails, and of the failure when it continues. */
async function recordHeld(recording: Recording): Promise<void> {
  const { submit, keepBoth, request, instance, rested, databaseUrl } = recording;
  const before = instance.execs.length;
  let refuse: () => void = () => undefined;
  instance.handle = (exec, response) => {
    refuse = () => void refused(exec, response);
  };
  const run = await submit([step('first', { input: { n: 13 } })]);
  await waitFor('the call to arrive', () => instance.execs.length > before);
  await request('POST', `/v1/runs/${run.run_id}/pause`, {});
  const db = connectDatabase(databaseUrl, 1);
  await waitFor('the workflow to know', () =>
    db('run').where({ run_id: run.run_id }).whereRaw('control_delivered = control_version').first('run_id'),
  );
  instance.handle = refused;
  refuse();
  await waitFor('its ladder', () => db('escalation').where({ run_id: run.run_id }).first('escalation_id'));
  await db.destroy();
  await rested(run);
  await request('POST', `/v1/runs/${run.run_id}/resume`, {});
  await decide(recording, await reviewOf(recording, run.run_id, 'first'), corrected);
  await keepBoth('held', run);
  instance.handle = echo;
}

/** `advised` is last: from then on there is a model. */
export const ladderRecorders: FeatureRecorders = {
  repaired: recordRepaired,
  approved: recordApproved,
  rejected: recordRejected,
  skipped: recordSkipped,
  'cancelled-in-review': recordCancelledInReview,
  'cancelled-in-ladder': recordCancelledInLadder,
  expired: recordExpired,
  held: recordHeld,
  alone: recordAlone,
  'two-reviews': recordTwoReviews,
  advised: recordAdvised,
};
