import { AppError } from '@capstan/core/errors/app-error';
import { expect, it } from 'vitest';
import { asFinishActivity } from '../../src/activities/create-activities.ts';
import type { RunClosing } from '../../src/use-cases/runs/closing.ts';
import { aMockActivity } from '../support/mock-activity.ts';

const succeeded: RunClosing = { run_id: 'run_1', outcome: 'succeeded', error: null, has_waited: true };

/** The end fails on command, without values as well when `always`. @returns the attempts, and the result */
async function finish(
  closing: RunClosing,
  { attempt, fault, always = false }: { attempt: number; fault: Error; always?: boolean },
) {
  const tried: RunClosing[] = [];
  const close = async (one: RunClosing): Promise<RunClosing> => {
    tried.push(one);
    if (always || tried.length === 1) throw fault;
    return one;
  };
  const end = await aMockActivity({ attempt })
    .run(() => asFinishActivity(closing, close))
    .catch((error: unknown) => error);
  return { tried, end };
}

const fault = new TypeError('a fault of ours');
const away = new AppError('unavailable', 'no database');
const data = Object.assign(new Error('invalid text'), { code: '22P02' });
const lost = { run_id: 'run_1', outcome: 'failed', error: { code: 'internal' }, has_waited: true };

it.each([
  ['a fault that comes back every time', { fault, attempt: 20 }],
  ['what cannot be stored', { fault: data, attempt: 1 }],
])('after %s a run ends without its values', async (_, how) => {
  const { tried, end } = await finish(succeeded, how);
  expect(end).toMatchObject(lost);
  expect(tried).toMatchObject([succeeded, lost]);
});

it('a cancelled one stays cancelled', async () => {
  const { end } = await finish({ ...succeeded, outcome: 'cancelled' }, { fault: data, attempt: 1 });
  expect(end).toMatchObject({ outcome: 'cancelled', error: null });
});

it.each([
  ['a first fault', { fault, attempt: 1 }],
  ['a part that is away, for however long', { fault: away, attempt: 10_000 }],
])('the end is retried unchanged after %s', async (_, how) => {
  const { tried, end } = await finish(succeeded, how);
  expect(end).toMatchObject({ nonRetryable: false });
  expect(tried).toEqual([succeeded]);
});

it('a fault that remains without values is retried without end', async () => {
  const { end } = await finish(succeeded, { fault, attempt: 10_000, always: true });
  expect(end).toMatchObject({ nonRetryable: false });
});
