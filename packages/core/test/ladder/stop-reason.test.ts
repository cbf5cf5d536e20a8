import { expect, it, test } from 'vitest';
import {
  cancelledByPerson,
  endOfQuestion,
  explainStop,
  rejectedByPerson,
  reviewKindOf,
  stopFailure,
  undecidedFailure,
} from '../../src/ladder/human-review.ts';

const exhausted = 'the escalation ladder is exhausted and human review is required';

it.each([
  ['exhausted', 'escalation', 'ladder_exhausted', 'no level is left to try'],
  ['no_advisor', 'escalation', 'ladder_exhausted', 'no model is there to ask'],
  ['advisor_says_human', 'escalation', 'ladder_exhausted', 'the advisor asks for a person'],
  ['gave_up', 'escalation', 'ladder_exhausted', 'the last executor gave up'],
  ['ops', 'ops', 'ladder_exhausted', 'a call failed in a way that only its operator can change'],
  ['budget', 'budget', 'ladder_exhausted', 'the money for model calls is used up'],
  ['time', 'escalation', 'escalation_timeout', 'the time for automated work is over'],
] as const)(
  'a ladder that stops for %s asks in a review of kind %s and fails as %s',
  (reason, kind, code, why) => {
    expect(reviewKindOf(reason)).toBe(kind);
    expect(explainStop(reason, 'tts')).toBe(`tts failed and needs a person: ${why}`);
    expect(stopFailure(reason, 'rate is odd')).toEqual({
      code,
      message: `${exhausted}: ${why}; last error: rate is odd`,
      details: { reason },
    });
  },
);

test('a ladder without an error names none', () => {
  expect(stopFailure('exhausted', null).message).toBe(`${exhausted}: no level is left to try`);
});

test('a cancelled ladder reports no error of its step', () => {
  const message = 'the escalation was cancelled';
  expect(stopFailure('cancelled', 'rate is odd')).toEqual({ code: 'escalation_cancelled', message });
});

test('the decision of a person names the note that came with it', () => {
  expect(rejectedByPerson('not again')).toEqual({
    code: 'review_rejected',
    message: 'a person rejected it in a review: not again',
  });
  expect(rejectedByPerson(undefined).message).toBe('a person rejected it in a review');
  expect(cancelledByPerson('too late')).toEqual({
    code: 'escalation_cancelled',
    message: 'a person cancelled the escalation: too late',
  });
});

test('an unanswered question fails with its subject', () => {
  expect(undecidedFailure({ code: 'escalation_timeout', message: 'it took too long' })).toEqual({
    code: 'ladder_exhausted',
    message: 'it took too long; nobody decided in time',
  });
  expect(undecidedFailure(null).message).toBe(
    `${exhausted}: no level is left to try; nobody decided in time`,
  );
});

test('a question ends with its answer, without one where its step may be skipped, or fails', () => {
  expect(endOfQuestion({ action: 'output', output: { title: 'yes' } })).toEqual({
    state: 'succeeded',
    output: { title: 'yes' },
  });
  expect(endOfQuestion({ action: 'output' })).toEqual({ state: 'succeeded', output: null });
  expect(endOfQuestion({ action: 'skip' })).toEqual({ state: 'skipped' });
  const error = rejectedByPerson('not again');
  expect(endOfQuestion({ action: 'reject', note: 'not again' })).toEqual({ state: 'failed', error });
});
