/** R6: what failed, timed out or was lost for a step comes behind every other instance in all its later attempts. */

import type { StepDefinition } from '@capstan/core/contracts/pipeline';
import type { StepEnd } from '@capstan/core/workflow-payloads';
import { expect, test } from 'vitest';
import { listStepAttempts } from '../../../src/db/attempt/attempt.ts';
import { aClaim, aRun, claimAttempt, type StoredRun } from '../../support/factories.ts';
import { answer, type Instance } from '../../support/fleet.ts';
import { useSteps } from '../../support/steps.ts';

const { db, newWorker, register } = useSteps();

const far = { tags: ['far'], cost_model: { type: 'per_call', rate_usd: 0.01 } };

function runOf(capability: string, step: Partial<StepDefinition> = {}): Promise<StoredRun> {
  return aRun(db, { definition: { steps: [{ id: 'a', capability, input: {}, timeout: '300ms', ...step }] } });
}

/** Where the attempts went, how each of them ended, and what the last choice made of each instance. */
async function attemptsOf({ run_id }: StoredRun) {
  const attempts = await listStepAttempts(db, { run_id, step_id: 'a', item: 0 });
  const { candidates = [], reason = '' } = attempts.at(-1)?.decision ?? {};
  return {
    ends: attempts.map(({ endpoint, state, error }) => [endpoint, state, error?.code ?? null]),
    verdicts: candidates.map(({ endpoint, verdict }) => [endpoint, verdict]),
    reason,
  };
}

/** Accepts, and never answers. */
async function registerHung(name: string): Promise<Instance> {
  const instance = await register({ name });
  instance.handle = () => undefined;
  return instance;
}

test('an instance that hangs is asked once, and the other at once, in every step', async () => {
  const hung = await registerHung('hang');
  const other = await register({ name: 'hang', ...far });
  for (let n = 1; n <= 3; n++) {
    const run = await runOf('hang', { retry: { initial: '1h' } });
    expect(await newWorker().execute(run, 'a')).toMatchObject({ kind: 'succeeded' });
    const { ends, verdicts } = await attemptsOf(run);
    expect(ends).toEqual([
      [hung.endpoint, 'lost', 'attempt_timeout'],
      [other.endpoint, 'settled', null],
    ]);
    expect(verdicts).toEqual([
      [other.endpoint, 'chosen'],
      [hung.endpoint, 'already_tried'],
    ]);
  }
});

test('another process knows what failed before, also of one that went away in mid-call', async () => {
  const [gone, failing] = [await registerHung('know'), await register({ name: 'know', tags: ['far'] })];
  failing.handle = (_, response) => answer(response, 500, { ok: false, error: 'broken' });
  const run = await runOf('know');
  const row = await db('instance').where({ endpoint: gone.endpoint }).first();
  await claimAttempt(db, aClaim(run, row, { capability: 'know', lease_ms: 0 }));
  expect(await newWorker().execute(run, { step_id: 'a', round: 2 })).toMatchObject({ kind: 'retry' });
  const last = await register({ name: 'know', ...far });
  expect(await newWorker().execute(run, { step_id: 'a', round: 3 })).toMatchObject({ kind: 'succeeded' });
  const { ends, verdicts } = await attemptsOf(run);
  expect(ends).toEqual([
    [gone.endpoint, 'lost', 'contact_lost'],
    [failing.endpoint, 'settled', 'capability_failed'],
    [last.endpoint, 'settled', null],
  ]);
  expect(verdicts[0]).toEqual([last.endpoint, 'chosen']);
  expect(new Map(verdicts as [string, string][]).get(gone.endpoint)).toBe('already_tried');
  expect(new Map(verdicts as [string, string][]).get(failing.endpoint)).toBe('already_tried');
});

test('the only instance is asked again after a pause, and the decision shows that', async () => {
  const only = await register({ name: 'only' });
  only.handle = (_, response) => answer(response, 500, { ok: false, error: 'broken' });
  const run = await runOf('only');
  const paused: StepEnd = await newWorker().execute(run, 'a');
  expect(paused).toMatchObject({ kind: 'retry', error: { code: 'capability_failed' } });
  only.handle = (_, response) => answer(response, 200, {});
  expect(await newWorker().execute(run, { step_id: 'a', round: 2 })).toMatchObject({ kind: 'succeeded' });
  expect((await attemptsOf(run)).reason).toContain('it has failed this call, and no other can take it');
});

test('an instance that refused a step for now comes behind one that has not', async () => {
  const busy = await register({ name: 'busy' });
  busy.handle = (_, response) => answer(response, 503, { ok: false, error: 'not now' });
  const run = await runOf('busy');
  expect(await newWorker().execute(run, 'a')).toMatchObject({ kind: 'retry' });
  const other = await register({ name: 'busy', ...far });
  expect(await newWorker().execute(run, { step_id: 'a', round: 2 })).toMatchObject({ kind: 'succeeded' });
  expect([busy.execs.length, other.execs.length]).toEqual([1, 1]);
});

test('a step whose time is over when it is asked for makes no call, and fails', async () => {
  const instance = await register({ name: 'late' });
  const run = await runOf('late');
  const failed = { kind: 'failed', error: { code: 'step_timeout' } };
  expect(await newWorker().execute(run, { step_id: 'a', remainingMs: 0 })).toMatchObject(failed);
  expect(await db('step').where({ run_id: run.run_id }).first()).toMatchObject({ state: 'failed' });
  expect(instance.execs).toEqual([]);
});
