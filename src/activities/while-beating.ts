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
  try {
    return await work(wantedSignal(context), context, show);
  } catch (error) {
    throw error instanceof CancelledFailure ? error : toApplicationFailure(error);
  } finally {
    clearInterval(beat);
  }
}

/**
 * Aborted with `cancelled` when the run no longer wants the step, with `abandoned` when this worker stops. Temporal may
 * have given the activity up because nothing was heard of it for a while: what is under way is wanted all the same, and
 * whoever was given a step next waits for its call.
 */
function wantedSignal(context: Context): AbortSignal {
  const abort = new AbortController();
  context.cancelled.catch(() => {
    const { cancelRequested, timedOut, notFound } = context.cancellationDetails ?? {};
    if (cancelRequested === true) abort.abort('cancelled');
    else if (timedOut !== true && notFound !== true) abort.abort('abandoned');
  });
  return abort.signal;
}
