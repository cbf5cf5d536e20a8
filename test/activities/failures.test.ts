import { AppError } from '@capstan/core/errors/app-error';
import { expect, it } from 'vitest';
import {
  finalFailure,
  isHopeless,
  laterFailure,
  toApplicationFailure,
} from '../../src/activities/failures.ts';

it('Temporal, which accepts only whole characters, receives nothing else', () => {
  const message = 'a\ud800b \udc00\ud83d\ude00\udc00 \ud800';
  const whole = 'a\ufffdb \ufffd\ud83d\ude00\ufffd \ufffd';
  const failure = { code: 'input_rejected', message };
  const told = [
    finalFailure(failure),
    laterFailure(failure, 1),
    toApplicationFailure(new AppError('unavailable', message)),
  ];
  expect(told.map((one) => (one as Error).message)).toEqual([whole, whole, whole]);
});

it('a fault that repeats is given up, a missing part is retried for ever', () => {
  const coded = (code: string) => Object.assign(new Error(code), { code });
  const fault = new TypeError('a fault of ours');
  const away = [coded('ECONNREFUSED'), coded('57P01'), new AppError('unavailable', 'no database')];
  expect([coded('22P02'), coded('23505')].map((one) => isHopeless(one, 1))).toEqual([true, true]);
  expect([1, 19, 20].map((attempt) => isHopeless(fault, attempt))).toEqual([false, false, true]);
  expect(away.map((one) => isHopeless(one, 1_000))).toEqual([false, false, false]);
  const given = toApplicationFailure(new AppError('output_too_large', 'too large'), true);
  expect(given).toMatchObject({ type: 'output_too_large', nonRetryable: true });
});
