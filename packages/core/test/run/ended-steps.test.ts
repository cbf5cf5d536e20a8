import { expect, it, test } from 'vitest';
import type { StepState } from '../../src/contracts/run-step.ts';
import { countEnded, countSucceeded, endedStepStates } from '../../src/run/ended-steps.ts';

const ended: readonly StepState[] = ['succeeded', 'failed', 'unknown', 'skipped', 'cancelled', 'reused'];
const open: readonly StepState[] = ['ready', 'running', 'retrying', 'waiting', 'in_review'];

it.each(ended)('a step that is %s has ended', (state) => {
  expect(endedStepStates.has(state)).toBe(true);
  expect(countEnded({ [state]: 3, running: 1 })).toEqual({ ended: 3, all: 4 });
});

it.each(open)('a step that is %s has not', (state) => {
  expect(endedStepStates.has(state)).toBe(false);
  expect(countEnded({ [state]: 2 })).toEqual({ ended: 0, all: 2 });
});

test('of no steps none has ended', () => {
  expect(countEnded({})).toEqual({ ended: 0, all: 0 });
});

test('a reused result counts as a success', () => {
  const counts = [{}, { failed: 4 }, { succeeded: 2 }, { reused: 3 }, { succeeded: 2, reused: 3 }];
  expect(counts.map(countSucceeded)).toEqual([0, 0, 2, 3, 5]);
});
