import { expect, it } from 'vitest';
import { exitCodeOf } from '../../src/cli/exit-codes.ts';
import { RunState } from '../../src/contracts/run.ts';

it('exits with the outcome of the run, and with 2 while there is none', () => {
  expect(Object.fromEntries(RunState.options.map((state) => [state, exitCodeOf(state)]))).toEqual({
    succeeded: 0,
    failed: 1,
    cancelled: 3,
    queued: 2,
    running: 2,
    paused: 2,
    cancelling: 2,
  });
});
