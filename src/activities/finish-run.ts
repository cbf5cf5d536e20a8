/**
 * The end of a run, insisted upon: a workflow that ended without it would leave a run open that nobody works on. An
 * output or an error that cannot be worked out or stored, however often it is tried, is left out, and the run has failed
 * instead; a part that is away is waited for without end.
 */
import { Context, log } from '@temporalio/activity';
import type { CloseRun, RunClosing } from '../services/runs/close-run.ts';
import { isHopeless, toApplicationFailure } from './failures.ts';

function withoutValues({ run_id, outcome, has_waited = false }: RunClosing): RunClosing {
  const message = 'the end of the run could not be worked out or stored; the log of the worker says why';
  const error = { code: 'internal', message };
  const end: Pick<RunClosing, 'outcome' | 'error'> =
    outcome === 'cancelled' ? { outcome, error: null } : { outcome: 'failed', error };
  return { run_id, ...end, has_waited };
}

export function createFinishRun(closeRun: CloseRun): CloseRun {
  return async (closing) => {
    try {
      return await closeRun(closing);
    } catch (fault) {
      if (!isHopeless(fault, Context.current().info.attempt)) throw toApplicationFailure(fault);
      log.error('a run ends without its output', { run_id: closing.run_id, fault });
    }
    try {
      return await closeRun(withoutValues(closing));
    } catch (fault) {
      throw toApplicationFailure(fault);
    }
  };
}
