/** Runs whose steps call capabilities, with their failures, limits and cancels. */
import { answer, echo } from '../../test/support/fleet.ts';
import { waitFor } from '../../test/support/wait.ts';
import { type FeatureRecorders, type Recording, step } from './recording.ts';

async function recordChain({ submit, keep }: Recording): Promise<void> {
  const run = await submit([step('first'), step('second', { input: { a: '{{ steps.first.output }}' } })]);
  await keep('chain', run.run_id);
}

async function recordParallel({ submit, keep }: Recording): Promise<void> {
  const middle = ['a', 'b', 'c', 'd'].map((id) => step(id, { depends_on: ['first'] }));
  const run = await submit([step('first'), ...middle, step('last', { depends_on: ['a', 'b', 'c', 'd'] })]);
  await keep('parallel', run.run_id);
}

async function recordFailed({ submit, keep, instance }: Recording): Promise<void> {
  instance.handle = (_exec, response) => answer(response, 422, { ok: false, error: 'no' });
  const off = { escalate: { enabled: false } };
  const run = await submit([step('first', off), step('second', { depends_on: ['first'] })]);
  await keep('failed', run.run_id);
  instance.handle = echo;
}

async function recordRetried({ submit, keep, instance }: Recording): Promise<void> {
  let calls = 0;
  instance.handle = (exec, response) => {
    calls += 1;
    answer(response, calls < 2 ? 500 : 200, exec.input);
  };
  const run = await submit([step('first', { retry: { initial: '10ms' } })]);
  await keep('retried', run.run_id);
  instance.handle = echo;
}

async function recordCancelled(recording: Recording): Promise<void> {
  const { submit, keep, request, instance } = recording;
  const before = instance.execs.length;
  instance.handle = () => undefined;
  const run = await submit([step('first'), step('second', { depends_on: ['first'] })]);
  await waitFor('the call to arrive', () => instance.execs.length > before);
  await request('POST', `/v1/runs/${run.run_id}/cancel`, {});
  await keep('cancelled', run.run_id);
  instance.handle = echo;
}

async function recordRunTimeout({ submit, keep, instance }: Recording): Promise<void> {
  instance.handle = () => undefined;
  const run = await submit([step('first')], { timeout: '500ms' });
  await keep('run-timeout', run.run_id);
  instance.handle = echo;
}

async function recordTimerUnused({ submit, keep }: Recording): Promise<void> {
  const run = await submit([step('first')], { timeout: '60s' });
  await keep('timer-unused', run.run_id);
}

async function recordStepTimeout({ submit, keep, instance }: Recording): Promise<void> {
  instance.handle = (_exec, response) => answer(response, 503, { error: 'busy' });
  const run = await submit([step('first', { total_timeout: '1s' })]);
  await keep('step-timeout', run.run_id);
  instance.handle = echo;
}

async function recordUnknownDelivery({ submit, keep, instance }: Recording): Promise<void> {
  instance.handle = () => undefined;
  const run = await submit([step('first', { timeout: '200ms', retry: { max: 0 } })]);
  await keep('unknown-delivery', run.run_id);
  instance.handle = echo;
}

export const callRecorders: FeatureRecorders = {
  chain: recordChain,
  parallel: recordParallel,
  failed: recordFailed,
  retried: recordRetried,
  cancelled: recordCancelled,
  'run-timeout': recordRunTimeout,
  'timer-unused': recordTimerUnused,
  'step-timeout': recordStepTimeout,
  'unknown-delivery': recordUnknownDelivery,
};
