import { AppError } from '@capstan/core/errors/app-error';
import { CancelledFailure } from '@temporalio/activity';
import { expect, it, onTestFinished, vi } from 'vitest';
import { whileBeating } from '../../src/activities/failures.ts';
import { aMockActivity } from '../support/mock-activity.ts';

function beating<Result>(work: () => Promise<Result>, environment = aMockActivity()) {
  return environment.run(() => whileBeating(2, work));
}

it('heartbeats until the work is done, and not after', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const environment = aMockActivity();
  let beats = 0;
  environment.on('heartbeat', () => beats++);
  const work = async () => void vi.advanceTimersByTime(7);
  await beating(work, environment);
  vi.advanceTimersByTime(100);
  expect(beats).toBe(3);
});

it('an internal fault is retried, a missing run never is', async () => {
  const fails = (error: Error) => beating(() => Promise.reject(error));
  await expect(fails(new AppError('unavailable', 'no database'))).rejects.toMatchObject({
    name: 'ApplicationFailure',
    type: 'unavailable',
    nonRetryable: false,
  });
  await expect(fails(new AppError('not_found', 'no run'))).rejects.toMatchObject({
    type: 'not_found',
    nonRetryable: true,
  });
});

it('a cancellation goes through as it is', async () => {
  await expect(beating(() => Promise.reject(new CancelledFailure('enough')))).rejects.toMatchObject({
    name: 'CancelledFailure',
    message: 'enough',
  });
});
