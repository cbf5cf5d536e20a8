import fc from 'fast-check';
import { expect, it } from 'vitest';
import { errorCodeOf, toHttpFailure, wordsOf } from '../../src/call/outcome.ts';

it('has the status in the message, for people, and in a field, for code', () => {
  expect(
    toHttpFailure('capability_failed', { status: 502, message: 'no key', errorCode: 'model_config' }),
  ).toEqual({
    code: 'capability_failed',
    message: 'HTTP 502: no key',
    status: 502,
    details: { error_code: 'model_config' },
  });
});

it('shows the refusal of the provider behind an instance', () => {
  const provider = { status: 400, code: 'context_length_exceeded' };
  expect(toHttpFailure('input_rejected', { status: 422, message: 'no', report: { provider } })).toEqual({
    code: 'input_rejected',
    message: 'HTTP 422: no',
    status: 422,
    details: { provider },
  });
});

it('gives back the answer of the instance, of any form', () => {
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 200, max: 599 }), (message, status) => {
      expect(wordsOf(toHttpFailure('input_rejected', { status, message }))).toBe(message);
    }),
  );
  const repeated = { status: 422, message: 'HTTP 422: the codec said no' };
  expect(wordsOf(toHttpFailure('input_rejected', repeated))).toBe(repeated.message);
});

it.each(['model_config: no key', 'HTTP 422: no', 'HTTP 502: model_config: no key'])(
  'does not read %j back from the message of another failure',
  (message) => {
    const failure = { code: 'contact_lost', message };
    expect([wordsOf(failure), errorCodeOf(failure)]).toEqual([message, undefined]);
  },
);

it.each([{ error_code: 'budget' }, 'model_config', null, [{ error_code: 'model_config' }]])(
  'takes no error code from the details %j of what no instance answered',
  (details) => {
    expect(errorCodeOf({ code: 'ladder_exhausted', message: 'm', details })).toBeUndefined();
  },
);

it('takes nothing but text for an error code', () => {
  const details = { error_code: 7 };
  expect(errorCodeOf({ code: 'capability_failed', message: 'm', status: 502, details })).toBeUndefined();
});
