import type { Hook, HookOutcome } from '@capstan/core/contracts/hook';
import { expect, test } from 'vitest';
import { describeReceived, describeReplay, describeUnsigned } from '../src/hook/hook-model.ts';

test.each<[HookOutcome, string | null, string, string]>([
  ['started', null, 'done', 'started a run'],
  ['repeated', 'delivery rcv_1 has the same key', 'quiet', 'repeats an earlier delivery'],
  ['filtered', 'the filter is false', 'quiet', 'left out by the filter'],
  ['answered', null, 'quiet', 'a check of the address, answered'],
  ['failed', '/job/a: body.a does not exist', 'failed', 'gave no job: /job/a: body.a does not exist'],
  ['refused', 'the hook is disabled', 'failed', 'its run was refused: the hook is disabled'],
])('a delivery that is %s because of %j is %s, in words: %s', (outcome, reason, tone, text) => {
  expect(describeReceived({ outcome, reason })).toEqual({ text, tone });
});

test.each<[Hook['refused'], string | null]>([
  [null, null],
  [{ count: 1, at: '', reason: 'no signature' }, '1 request proved no sender, the latest: no signature'],
  [{ count: 7, at: '', reason: 'too old' }, '7 requests proved no sender, the latest: too old'],
])('requests without a proof of their sender %j are shown: %s', (refused, text) => {
  expect(describeUnsigned({ refused })).toBe(text);
});

test.each<[HookOutcome, boolean]>([
  ['started', true],
  ['repeated', true],
  ['failed', false],
  ['refused', false],
])('a replay of a delivery that is %s warns of another run: %s', (outcome, isWarned) => {
  expect(describeReplay({ outcome }).includes('another run')).toBe(isWarned);
});
