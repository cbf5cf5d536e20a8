import { CancelledFailure, Context } from '@temporalio/activity';
import { toApplicationFailure } from './failures.ts';

/**
 * Does the work of an activity with heartbeats, and a signal that tells whether it is still wanted.
 *
 * @param work its faults become failures that Temporal retries; what it shows stands in the next heartbeats
 */
export async function whileBeating<Result>(
  heartbeatIntervalMs: number,
  work: (signal: AbortSignal, context: Context, show: (details: object) => void) => Promise<Result>,
): Promise<Result> {
  const context = Context.current();
  let details: object | undefined;
  const beat = setInterval(() => context.heartbeat(details), heartbeatIntervalMs);
  const show = (shown: object): void => {
    details = shown;
  };
  return whileWanted((signal) => work(signal, context, show)).finally(() => clearInterval(beat));
}

/** The same without heartbeats. */
export async function whileWanted<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  try {
    return await work(wantedSignal(Context.current()));
  } catch (error) {
    throw error instanceof CancelledFailure ? error : toApplicationFailure(error);
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
