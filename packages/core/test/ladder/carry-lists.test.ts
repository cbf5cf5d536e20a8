import { expect, it, test } from 'vitest';
import { carryLists, toWireAdvice, toWireAttempt } from '../../src/ladder/ladder.ts';

function fingerprintOf(error: string): string {
  return `of ${error}`;
}

function anAttempt(level: number, error: string) {
  return { level, label: `level ${level}`, attempted_at: 1_000 + level, error };
}

test('an advice answers the attempt at its own place', () => {
  const lists = carryLists(
    {
      escalation_history: [anAttempt(0, 'a'), anAttempt(1, 'b')],
      escalation_advice: [
        { from_level: 1, label: 'fast model', instructions: 'one' },
        {
          from_level: 2,
          label: 'capable model',
          instructions: 'two',
          reasoning: 'why',
          suggested_executor_level: 0,
        },
      ],
    },
    fingerprintOf,
  );
  expect(lists).toStrictEqual({
    history: [
      { ...anAttempt(0, 'a'), fingerprint: 'of a' },
      { ...anAttempt(1, 'b'), fingerprint: 'of b' },
    ],
    advice: [
      { from_level: 1, label: 'fast model', instructions: 'one', fingerprint: 'of a' },
      {
        from_level: 2,
        label: 'capable model',
        instructions: 'two',
        reasoning: 'why',
        suggested_executor_level: 0,
        fingerprint: 'of b',
      },
    ],
  });
});

test('the wire shows the lists as a job has brought them, without fingerprints', () => {
  const escalation_history = [anAttempt(0, 'a'), anAttempt(1, 'b')];
  const escalation_advice = [
    { from_level: 1, label: 'fast model', instructions: 'one' },
    { from_level: 2, label: 'capable model', instructions: 'two', suggested_executor_level: 0 },
  ];
  const { history, advice } = carryLists({ escalation_history, escalation_advice }, fingerprintOf);
  expect(history.map(toWireAttempt)).toStrictEqual(escalation_history);
  expect(advice.map(toWireAdvice)).toStrictEqual(escalation_advice);
});

test('an advice behind the last attempt answers that one, and none where there was no attempt', () => {
  const advice = { from_level: 1, label: 'fast model', instructions: 'one' };
  const behind = carryLists(
    {
      escalation_history: [anAttempt(0, 'a'), anAttempt(1, 'b'), anAttempt(1, 'c')],
      escalation_advice: [advice, advice, advice, advice],
    },
    fingerprintOf,
  );
  expect(behind.advice.map(({ fingerprint }) => fingerprint)).toEqual(['of a', 'of b', 'of c', 'of c']);
  const alone = carryLists({ escalation_history: [], escalation_advice: [advice] }, fingerprintOf);
  expect(alone).toEqual({ history: [], advice: [{ ...advice, fingerprint: '' }] });
});

it('keeps 8 KiB of an error, and takes the fingerprint of what it keeps', () => {
  const { history } = carryLists(
    { escalation_history: [anAttempt(0, 'x'.repeat(9_000))], escalation_advice: [] },
    fingerprintOf,
  );
  expect(Buffer.byteLength(history[0]?.error ?? '')).toBeLessThanOrEqual(8_192);
  expect(history[0]?.fingerprint).toBe(`of ${history[0]?.error}`);
});
