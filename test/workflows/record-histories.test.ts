/** Runs every feature on the real server and keeps its history. Only when asked: `npm run histories`. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Escalation } from '../../src/contracts/escalation.ts';
import type { Review } from '../../src/contracts/review.ts';
import type { Run } from '../../src/contracts/run.ts';
import { connectDatabase } from '../../src/db/connect.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { answer, echo, type Handler, type Instance, startInstance } from '../support/fleet.ts';
import { type HistoryRecorder, startHistoryRecorder } from '../support/history-recorder.ts';
import { decide, reviewOf } from '../support/reviews.ts';
import { waitFor } from '../support/wait.ts';

let capstan: Capstan;
let instance: Instance;

let recorder: HistoryRecorder;
const keep: HistoryRecorder['keep'] = (name, runId) => recorder.keep(name, runId);
const keepWorkflow: HistoryRecorder['keepWorkflow'] = (name, id) => recorder.keepWorkflow(name, id);

function step(id: string, extra: object = {}) {
  return { id, capability: 'echo', input: {}, ...extra };
}

describe.runIf(process.env.RECORD_HISTORIES)('histories', () => {
  beforeAll(async () => {
    capstan = await startCapstan();
    recorder = await startHistoryRecorder(capstan);
    instance = await startInstance(capstan, { name: 'echo' });
  });
  afterAll(async () => {
    await instance?.stop();
    await capstan?.stop();
    await recorder?.close();
  });

  const submit = async (steps: object[], extra: object = {}): Promise<Run> =>
    capstan.submit(steps, {}, extra);

  test('chain', async () => {
    const run = await submit([step('first'), step('second', { input: { a: '{{ steps.first.output }}' } })]);
    await keep('chain', run.run_id);
  });

  test('parallel', async () => {
    const middle = ['a', 'b', 'c', 'd'].map((id) => step(id, { depends_on: ['first'] }));
    const run = await submit([step('first'), ...middle, step('last', { depends_on: ['a', 'b', 'c', 'd'] })]);
    await keep('parallel', run.run_id);
  });

  test('failed', async () => {
    instance.handle = (_exec, response) => answer(response, 422, { ok: false, error: 'no' });
    const off = { escalate: { enabled: false } };
    const run = await submit([step('first', off), step('second', { depends_on: ['first'] })]);
    await keep('failed', run.run_id);
    instance.handle = echo;
  });

  test('retried', async () => {
    let calls = 0;
    instance.handle = (exec, response) => {
      calls += 1;
      answer(response, calls < 2 ? 500 : 200, exec.input);
    };
    const run = await submit([step('first', { retry: { initial: '10ms' } })]);
    await keep('retried', run.run_id);
    instance.handle = echo;
  });

  test('cancelled', async () => {
    const before = instance.execs.length;
    instance.handle = () => undefined;
    const run = await submit([step('first'), step('second', { depends_on: ['first'] })]);
    await waitFor('the call to arrive', () => instance.execs.length > before);
    await capstan.request('POST', `/v1/runs/${run.run_id}/cancel`, {});
    await keep('cancelled', run.run_id);
    instance.handle = echo;
  });

  test('run-timeout', async () => {
    instance.handle = () => undefined;
    const run = await submit([step('first')], { timeout: '500ms' });
    await keep('run-timeout', run.run_id);
    instance.handle = echo;
  });

  test('timer-unused', async () => {
    const run = await submit([step('first')], { timeout: '60s' });
    await keep('timer-unused', run.run_id);
  });

  test('step-timeout', async () => {
    instance.handle = (_exec, response) => answer(response, 503, { error: 'busy' });
    const run = await submit([step('first', { total_timeout: '1s' })]);
    await keep('step-timeout', run.run_id);
    instance.handle = echo;
  });

  test('unknown-delivery', async () => {
    instance.handle = () => undefined;
    const run = await submit([step('first', { timeout: '200ms', retry: { max: 0 } })]);
    await keep('unknown-delivery', run.run_id);
    instance.handle = echo;
  });

  const refused: Handler = (exec, response) =>
    exec.input.n === 5 ? echo(exec, response) : answer(response, 422, { ok: false, error: 'n must be 5' });

  /** Not remembered, so that every run here asks. */
  const corrected = { action: 'edit', input: { n: 5 }, remember: false } as const;

  /** Of the run and of its step's first ladder. */
  const keepBoth = async (name: string, { run_id }: Run): Promise<void> => {
    await keep(name, run_id);
    await keepWorkflow(`${name}-ladder`, `esc/${run_id}/first/0`);
  };

  test('repaired', async () => {
    const strict = await startInstance(capstan, {
      name: 'strict',
      input: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
    });
    const run = await submit([
      { ...step('first', { input: { n: '5' }, escalate: { repair: 'apply' } }), capability: 'strict' },
      step('second', { depends_on: ['first'] }),
    ]);
    await keepBoth('repaired', run);
    await strict.stop();
  });

  test('approved', async () => {
    instance.handle = refused;
    const run = await submit([
      step('first', { input: { n: 1 } }),
      step('second', { depends_on: ['first'], input: { n: 5 } }),
    ]);
    await decide(capstan, await reviewOf(capstan, run.run_id, 'first'), corrected);
    await keepBoth('approved', run);
    await keepWorkflow('approved-round', `esc/${run.run_id}/first/0/r2`);
    instance.handle = echo;
  });

  test('rejected', async () => {
    instance.handle = refused;
    const run = await submit([step('first', { input: { n: 2 } }), step('second', { input: { n: 5 } })]);
    await decide(capstan, await reviewOf(capstan, run.run_id, 'first'), { action: 'reject' });
    await keep('rejected', run.run_id);
    instance.handle = echo;
  });

  test('skipped', async () => {
    instance.handle = refused;
    const first = step('first', { input: { n: 3 }, optional: true });
    const run = await submit([
      first,
      step('second', { depends_on: ['first'] }),
      step('third', { input: { n: 5 } }),
    ]);
    await decide(capstan, await reviewOf(capstan, run.run_id, 'first'), { action: 'skip' });
    await keep('skipped', run.run_id);
    instance.handle = echo;
  });

  test('cancelled-in-review', async () => {
    instance.handle = refused;
    const run = await submit([step('first', { input: { n: 4 } })]);
    await reviewOf(capstan, run.run_id, 'first');
    await capstan.request('POST', `/v1/runs/${run.run_id}/cancel`, {});
    await keep('cancelled-in-review', run.run_id);
    instance.handle = echo;
  });

  test('cancelled-in-ladder', async () => {
    const before = instance.execs.length;
    instance.handle = (exec, response) => (exec.input.n === 5 ? undefined : refused(exec, response));
    const run = await submit([step('first', { input: { n: 6 } })]);
    await decide(capstan, await reviewOf(capstan, run.run_id, 'first'), corrected);
    await waitFor('the corrected call', () =>
      instance.execs.slice(before).some(({ input }) => input.n === 5),
    );
    await capstan.request('POST', `/v1/runs/${run.run_id}/cancel`, {});
    await keep('cancelled-in-ladder', run.run_id);
    await keepWorkflow('cancelled-in-ladder-round', `esc/${run.run_id}/first/0/r2`);
    instance.handle = echo;
  });

  test('expired', async () => {
    instance.handle = refused;
    const run = await submit([step('first', { input: { n: 7 } })]);
    const { review_id } = await reviewOf(capstan, run.run_id, 'first');
    const db = connectDatabase(capstan.databaseUrl, 1);
    await db('review').where({ review_id }).update({ due_at: db.fn.now() });
    await db.destroy();
    await keep('expired', run.run_id);
    instance.handle = echo;
  });

  test('alone', async () => {
    const job = { job_type: 'title', prompt: 'a title for the trailer' };
    const { body } = await capstan.request<Escalation>('POST', '/v1/escalations', job);
    const path = `/v1/escalations/${body.escalation_id}`;
    const asked = await waitFor('the ladder to ask a person', async () => {
      const { body: ladder } = await capstan.request<Escalation>('GET', path);
      return ladder.state === 'in_review' && ladder.review_id;
    });
    const { body: review } = await capstan.request<Review>('GET', `/v1/reviews/${asked}`);
    await decide(capstan, review, { action: 'output', output: 'Night', remember: false });
    const { body: projects } = await capstan.request<{ items: { project_id: string }[] }>(
      'GET',
      '/v1/projects',
    );
    await keepWorkflow('alone-ladder', `esc/${projects.items[0]?.project_id}/${body.escalation_id}`);
  });

  // Last: from here on there is a model.
  test('advised', async () => {
    instance.handle = refused;
    const model = await startInstance(capstan, { name: 'model.fast' });
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
  });
});
