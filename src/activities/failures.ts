/** Translates into Temporal's failures: the code is the type, so that a workflow and the Web UI can tell. */
import { ApplicationFailure, log } from '@temporalio/activity';
import type { Failure } from '../contracts/primitives.ts';
import type { LadderPlace } from '../core/run/escalate-input.ts';
import { toAppError } from '../errors.ts';

/** The step has failed; no retry changes that. */
export const finalFailure = ({ code, message, details }: Failure): ApplicationFailure =>
  ApplicationFailure.create({ type: code, message, nonRetryable: true, details: details ? [details] : [] });

/** The step has failed, and its escalation is there: the second detail says where. */
export const escalatedFailure = (
  { code, message, details = null }: Failure,
  { escalation_id, transition, command }: LadderPlace,
): ApplicationFailure =>
  ApplicationFailure.create({
    type: code,
    message,
    nonRetryable: true,
    details: [details, { escalation_id, transition, command }],
  });

/** The step may succeed later. The details stay in the attempt's row, the history holds one line. */
export const laterFailure = ({ code, message }: Failure, delayMs: number): ApplicationFailure =>
  ApplicationFailure.create({ type: code, message, nextRetryDelay: delayMs });

export const toApplicationFailure = (thrown: unknown): unknown => {
  if (thrown instanceof ApplicationFailure) return thrown;
  const error = toAppError(thrown);
  if (error.code === 'internal') log.error('unexpected fault', { fault: thrown });
  return ApplicationFailure.create({
    type: error.code,
    message: error.message,
    nonRetryable: error.code === 'not_found',
    cause: error,
  });
};
