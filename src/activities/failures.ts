/**
 * Translates into Temporal's failures: the code is the type, so that workflows and the Web UI can distinguish them. The
 * work of an activity runs within this translation, with heartbeats.
 */

import type { Failure } from '@capstan/core/contracts/primitives';
import { AppError, isUnavailable, toAppError } from '@capstan/core/errors/app-error';
import type { LadderPosition } from '@capstan/core/workflow-payloads';
import { ApplicationFailure, CancelledFailure, Context, log } from '@temporalio/activity';

const halfPairs = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Temporal rejects lone halves of surrogate pairs, which texts of instances may hold. */
function wellFormed(text: string): string {
  return text.replace(halfPairs, '\ufffd');
}

/** The step has failed; no retry changes that. */
export function finalFailure({ code, message, details }: Failure): ApplicationFailure {
  return ApplicationFailure.create({
    type: code,
    message: wellFormed(message),
    nonRetryable: true,
    details: details ? [details] : [],
  });
}

/** The step has failed, and its escalation is open: the second detail holds its position. */
export function escalatedFailure(
  { code, message, details = null }: Failure,
  { escalation_id, transition, command }: LadderPosition,
): ApplicationFailure {
  return ApplicationFailure.create({
    type: code,
    message: wellFormed(message),
    nonRetryable: true,
    details: [details, { escalation_id, transition, command }],
  });
}

/** The step may succeed later. The details stay in the attempt's row, the history holds one line. */
export function laterFailure({ code, message }: Failure, delayMs: number): ApplicationFailure {
  return ApplicationFailure.create({ type: code, message: wellFormed(message), nextRetryDelay: delayMs });
}

/** Data and constraints by SQLSTATE. */
function isDataFault(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && /^2[23]\w{3}$/.test(String(thrown.code));
}

const mostTries = 20;

/**
 * Whether a retry is useless: by the kind of the fault, or because it failed so often while every part was available.
 */
export function isHopeless(thrown: unknown, attempt: number): boolean {
  if (isUnavailable(thrown) || (thrown instanceof AppError && thrown.code === 'unavailable')) return false;
  return isDataFault(thrown) || attempt >= mostTries;
}

/** @param isFinal no retry changes it */
export function toApplicationFailure(thrown: unknown, isFinal = false): unknown {
  if (thrown instanceof ApplicationFailure) return thrown;
  const error = toAppError(thrown);
  if (error.code === 'internal') log.error('unexpected fault', { fault: thrown });
  return ApplicationFailure.create({
    type: error.code,
    message: wellFormed(error.message),
    nonRetryable: isFinal || error.code === 'not_found',
    cause: error,
  });
}

/**
 * Does the work of an activity with heartbeats, and a signal that aborts when it is no longer wanted.
 *
 * @param work its faults become failures that Temporal retries; the next heartbeats carry the progress that it shows
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
 * The signal aborts with `cancelled` when the run no longer wants the step, with `abandoned` when this worker stops. A
 * worker whose heartbeats were late may have lost the activity: its call is still wanted, and the next attempt of the
 * activity waits for that call.
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
