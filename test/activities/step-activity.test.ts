import type { StepEnd } from '@capstan/core/workflow-payloads';
import { reportMs } from '@capstan/core/workflow-payloads';
import type { Info } from '@temporalio/activity';
import { ActivityCancellationDetails } from '@temporalio/common';
import type { MockActivityEnvironment } from '@temporalio/testing';
import { expect, it } from 'vitest';
import type { StepActivityResult } from '../../src/activities/step-activities.ts';
import { asStepActivity } from '../../src/activities/step-activities.ts';
import type { StepControl, StepRequest } from '../../src/use-cases/steps/call.ts';
import { aMockActivity } from '../support/mock-activity.ts';

const request: StepRequest = { run_id: 'run_1', step_id: 'a', revision: 0 };

function succeeded(output: string | null = 'ok'): StepEnd {
  const attempt = { endpoint: 'http://one', cost_usd: 0.5, duration_ms: 7 };
  return { kind: 'succeeded', output, attempt } as StepEnd;
}

/** Runs the activity around a step with the given end. */
function run(
  execute: (
    asked: StepRequest,
    control: StepControl,
    cancel: MockActivityEnvironment['cancel'],
  ) => StepEnd | Promise<StepEnd>,
  { info, asked = request }: { info?: Partial<Info>; asked?: StepRequest } = {},
): Promise<StepActivityResult> {
  const environment = aMockActivity({ scheduledTimestampMs: Date.now(), ...info });
  const step = async (control: StepControl) => execute(asked, control, environment.cancel);
  return environment.run(() => asStepActivity(5, {}, step));
}

it('reports to the workflow the instance, cost and duration of the step', async () => {
  const result = run(() => succeeded());
  expect(await result).toEqual({ endpoint: 'http://one', cost_usd: 0.5, duration_ms: 7, output: 'ok' });
});

it.each([
  ['of 4 KiB travels into the history', 'x'.repeat(4_094), true],
  ['of one byte more stays in the database', 'x'.repeat(4_095), false],
  ['is measured in bytes, not in characters', 'ж'.repeat(2_048), false],
])('a result %s', async (_, output, travels) => {
  expect('output' in (await run(() => succeeded(output)))).toBe(travels);
});

it('passes a wait on, with the moment as text', async () => {
  const until = new Date('2030-01-02T03:04:05Z');
  const waits = { kind: 'waiting', awaiting: 'budget', until, ref: { review_id: 'rev_1' } } as const;
  expect(await run(() => waits)).toEqual({
    waiting: { awaiting: 'budget', until: '2030-01-02T03:04:05.000Z', ref: { review_id: 'rev_1' } },
  });
  expect(await run(() => ({ ...waits, until: null, ref: null }))).toEqual({
    waiting: { awaiting: 'budget', until: null },
  });
});

const error = { code: 'capability_failed', message: 'HTTP 500: broken', details: { n: 1 } } as const;
const place = { escalation_id: 'esc_1', transition: 3, command: { kind: 'execute' } };

it.each<[string, object, object]>([
  ['fails for good', { kind: 'failed', error }, { nonRetryable: true, details: [{ n: 1 }] }],
  ['fails with an unknown end', { kind: 'unknown', error }, { nonRetryable: true }],
  ['names its escalation', { kind: 'escalated', error, place }, { details: [{ n: 1 }, place] }],
  ['asks to come again', { kind: 'retry', error, delayMs: 70 }, { nonRetryable: false, nextRetryDelay: 70 }],
])('a step that %s fails in Temporal with its code as type', async (_, end, failure) => {
  await expect(run(() => end as StepEnd)).rejects.toMatchObject({
    name: 'ApplicationFailure',
    type: 'capability_failed',
    message: 'HTTP 500: broken',
    ...failure,
  });
});

it('a step that was cancelled ends as cancelled, one that a person skipped as skipped', async () => {
  const cancelled = run(() => ({ kind: 'cancelled' }) as StepEnd);
  await expect(cancelled).rejects.toMatchObject({ name: 'CancelledFailure' });
  expect(await run(() => ({ kind: 'skipped' }) as StepEnd)).toEqual({ skipped: true });
});

it.each([
  ['the time of its step', { scheduleToCloseTimeoutMs: 1_000 + reportMs }, 1_000],
  [
    'nothing when the time is over, although Temporal gives it more',
    { scheduleToCloseTimeoutMs: 1_000 + reportMs, scheduledTimestampMs: 1 },
    0,
  ],
])('an activity has %s', async (_, limits, expected) => {
  let remaining = Number.NaN;
  const info = limits;
  const begunAt = Date.now();
  const result = run(
    (_asked, control) => {
      remaining = control.remainingMs;
      return succeeded();
    },
    { info },
  );
  await result;
  expect(remaining).toBeLessThanOrEqual(expected);
  if (expected > 0) expect(remaining).toBeGreaterThanOrEqual(expected - (Date.now() - begunAt));
});

it('passes the number of its round to the step', async () => {
  const rounds: number[] = [];
  const result = run(
    (_, { round }) => {
      rounds.push(round);
      return succeeded();
    },
    { info: { attempt: 4 } },
  );
  await result;
  expect(rounds).toEqual([4]);
});

it.each([
  [
    'cancelled by its run',
    'CANCELLED',
    new ActivityCancellationDetails({ cancelRequested: true }),
    'cancelled',
  ],
  [
    'left by its worker',
    'WORKER_SHUTDOWN',
    new ActivityCancellationDetails({ workerShutdown: true }),
    'abandoned',
  ],
] as const)('a step that is %s receives the reason', async (_, reason, details, told) => {
  const result = run(async (_asked, { signal }, cancel) => {
    const stopped = new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)));
    cancel(reason, details);
    return succeeded(String(await stopped));
  });
  expect(await result).toMatchObject({ output: told });
});

it.each([
  ['sent no heartbeat in time', 'TIMED_OUT', { timedOut: true }],
  ['is with another worker', 'NOT_FOUND', { notFound: true }],
] as const)('a step continues although, for Temporal, it %s', async (_, reason, details) => {
  const result = run(async (_asked, { signal }, cancel) => {
    cancel(reason, new ActivityCancellationDetails(details));
    await new Promise(setImmediate);
    return signal.aborted ? { kind: 'cancelled' } : succeeded('all the same');
  });
  expect(await result).toMatchObject({ output: 'all the same' });
});
