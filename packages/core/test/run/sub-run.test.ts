import { expect, test } from 'vitest';
import { deepestSubRun } from '../../src/contracts/limits.ts';
import { findDepthFault, toStartFailure, toSubRunFailure } from '../../src/run/step-rules.ts';

test('runs may be so deep, and no deeper', () => {
  expect(findDepthFault(deepestSubRun)).toBeNull();
  expect(findDepthFault(deepestSubRun + 1)).toEqual({
    code: 'definition_invalid',
    message: `pipelines in pipelines: ${deepestSubRun + 1} runs deep; allowed are ${deepestSubRun}`,
  });
});

test('a step fails with what its run failed with', () => {
  const error = { code: 'input_invalid', message: '/a is missing' };
  expect(toSubRunFailure({ run_id: 'run_1', pipeline: 'p@1.0.0', state: 'failed', error })).toEqual({
    code: 'sub_run_failed',
    message: 'run run_1 of p@1.0.0 ended as failed: /a is missing',
    details: { run_id: 'run_1', code: 'input_invalid' },
  });
});

test('a run that was cancelled without an error is a failure too', () => {
  expect(toSubRunFailure({ run_id: 'run_1', pipeline: 'p', state: 'cancelled', error: null })).toEqual({
    code: 'sub_run_failed',
    message: 'run run_1 of p ended as cancelled',
    details: { run_id: 'run_1', code: 'run_cancelled' },
  });
});

test('the fault of a run that could not be started names it', () => {
  expect(toStartFailure('p@2', { code: 'not_found', message: 'there is none' })).toEqual({
    code: 'not_found',
    message: 'p@2: there is none',
  });
});
