/** Where the ends and waits of a local run's steps and items are written. */
import type { ErrorCode } from '../contracts/errors.ts';
import type { Json } from '../contracts/primitives.ts';
import type { UnitEnd, UnitWaiting } from '../core/run/drive.ts';
import type { Wait } from '../core/run/wait.ts';
import type { RunJournal, UnitName } from './run-journal.ts';

export interface UnitResults {
  end(unit: UnitName, ended: UnitEnd, output?: Json): UnitEnd;
  succeed(unit: UnitName, output: Json): UnitEnd;
  fail(unit: UnitName, code: ErrorCode, message: string, details?: Json): UnitEnd;
  wait(unit: UnitName, wait: Wait): UnitWaiting;
}

export function keyOfUnit({ id, item }: UnitName): string {
  return `${id}/${item}`;
}

export const cancelledEnd: UnitEnd = {
  state: 'cancelled',
  error: { code: 'run_cancelled', message: 'the step was cancelled' },
};

export function createUnitResults(journal: RunJournal): UnitResults {
  const end: UnitResults['end'] = (unit, ended, output) => {
    const part = 'error' in ended ? { error: ended.error } : output === undefined ? {} : { output };
    journal.move(unit, ended.state, part);
    return ended;
  };
  return {
    end,
    succeed: (unit, output) => end(unit, { state: 'succeeded' }, output),
    fail: (unit, code, message, details) =>
      end(unit, {
        state: 'failed',
        error: { code, message, ...(details === undefined ? {} : { details }) },
      }),
    wait: (unit, wait) => {
      journal.move(unit, 'waiting', { data: { awaiting: wait.awaiting } });
      return { state: 'waiting', wait };
    },
  };
}
