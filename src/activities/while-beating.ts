import { CancelledFailure, Context } from '@temporalio/activity';
import { toApplicationFailure } from './failures.ts';

/**
 * Does the work of an activity with heartbeats, and a signal that tells whether it is still wanted.
 *
 * @param work its faults become failures that Temporal retries
 */
export async function whileBeating<Result>(
  heartbeatIntervalMs: number,
  work: (signal: AbortSignal, context: Context) => Promise<Result>,
): Promise<Result> {
  const context = Context.current();
  const beat = setInterval(() => context.heartbeat(), heartbeatIntervalMs);
  try {
    return await work(wantedSignal(context), context);
  } catch (error) {
    throw error instanceof CancelledFailure ? error : toApplicationFailure(error);
  } finally {
    clearInterval(beat);
  }
}

/** Aborted with `cancelled` when the run no longer wants the step, with `abandoned` when this worker stops. */
function wantedSignal(context: Context): AbortSignal {
  const abort = new AbortController();
  context.cancelled.catch(() => {
    abort.abort(context.cancellationDetails?.cancelRequested === true ? 'cancelled' : 'abandoned');
  });
  return abort.signal;
}
