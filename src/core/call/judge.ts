/**
 * The retry table: what an outcome means for the attempt, the money and the step. One owner per kind of failure:
 * another instance at once (connect error, 5xx, refusal), a later attempt (lost contact, time-out, or when all
 * instances were tried), or the end (refused input, too large).
 */
import type { ErrorCode } from '../../contracts/errors.ts';
import type { Failure } from '../../contracts/primitives.ts';
import type { Ambiguity, AttemptState } from '../../contracts/run.ts';
import type { Settlement } from '../money/price.ts';
import { toHttpFailure } from './http-failure.ts';
import type { CallOutcome } from './outcome.ts';

export interface DeliveryFacts {
  /** Counted failures of this key before this attempt. */
  readonly countedBefore: number;
  /** Counted failures that are retried; 0 = delivered at most once. */
  readonly retryMax: number;
}

export interface Verdict {
  readonly ambiguity: Ambiguity | null;
  readonly attemptState: AttemptState;
  readonly settlement: Settlement;
  /** Whether the failure counts against `retry.max`. */
  readonly counted: boolean;
  /** succeeded: done. failover: another instance now. retry: a later attempt. failed, unknown, cancelled: the end. */
  readonly next: 'succeeded' | 'failover' | 'retry' | 'failed' | 'unknown' | 'cancelled';
  readonly error: (Failure & { readonly code: ErrorCode }) | null;
}

function problem(code: ErrorCode, message: string) {
  return { code, message };
}

/** The request reached an instance and failed for a reason that another instance or time may cure. */
function delivered(
  facts: DeliveryFacts,
  part: Pick<Verdict, 'ambiguity' | 'settlement' | 'error'> & { next: 'failover' | 'retry' },
): Verdict {
  const isExhausted = facts.countedBefore + 1 > facts.retryMax;
  const isUnknown = facts.retryMax === 0 && part.ambiguity === 'ambiguous';
  return {
    ...part,
    attemptState: part.settlement === 'lost' ? 'lost' : 'settled',
    counted: true,
    next: isUnknown ? 'unknown' : isExhausted ? 'failed' : part.next,
    error:
      isUnknown && part.error !== null
        ? problem('delivery_unknown', `${part.error.message}; retry.max is 0, so it is not sent again`)
        : part.error,
  };
}

function final(
  settlement: Settlement,
  ambiguity: Ambiguity,
  error: Exclude<Verdict['error'], null>,
): Verdict {
  return {
    ambiguity,
    attemptState: 'settled',
    settlement,
    counted: false,
    next: 'failed',
    error,
  };
}

/** Whether the lost attempts of a killed process have used up the retries already. */
export function isExhausted({ countedBefore, retryMax }: DeliveryFacts): boolean {
  return countedBefore > retryMax;
}

function withheld({ countedBefore, retryMax }: DeliveryFacts): Verdict {
  return {
    ambiguity: 'not_sent',
    attemptState: 'released',
    settlement: 'not_sent',
    counted: false,
    next: retryMax === 0 ? 'unknown' : 'failed',
    error:
      retryMax === 0
        ? problem(
            'delivery_unknown',
            'contact was lost after it was sent; retry.max is 0, so it is not sent again',
          )
        : problem('contact_lost', `contact was lost ${countedBefore} times; retry.max is ${retryMax}`),
  };
}

export function judgeOutcome(outcome: CallOutcome, facts: DeliveryFacts): Verdict {
  switch (outcome.kind) {
    case 'answered':
      return {
        ambiguity: 'answered',
        attemptState: 'settled',
        settlement: 'answered',
        counted: false,
        next: 'succeeded',
        error: null,
      };
    case 'rejected':
      return final('failed', 'rejected', toHttpFailure('input_rejected', outcome));
    case 'malformed':
      return final('failed', 'answered', problem('response_invalid', outcome.message));
    case 'output_invalid':
      return final('answered', 'answered', problem('output_invalid', outcome.message));
    case 'too_large':
      return final(
        'answered',
        'answered',
        problem(
          'output_too_large',
          `the answer is larger than ${outcome.limitBytes} bytes; write large data to the media store`,
        ),
      );
    case 'failed':
      return delivered(facts, {
        ambiguity: 'answered',
        settlement: 'failed',
        next: 'failover',
        error: toHttpFailure('capability_failed', outcome),
      });
    case 'invalid':
      return delivered(facts, {
        ambiguity: 'answered',
        settlement: 'failed',
        next: 'failover',
        error: problem('response_invalid', outcome.message),
      });
    case 'lost':
      return delivered(facts, {
        ambiguity: 'ambiguous',
        settlement: 'lost',
        next: 'retry',
        error: problem('contact_lost', outcome.message),
      });
    case 'timeout':
      return delivered(facts, {
        ambiguity: 'ambiguous',
        settlement: 'lost',
        next: 'retry',
        error: problem('attempt_timeout', `no answer within ${outcome.timeoutMs} ms`),
      });
    case 'overloaded':
      return {
        ambiguity: 'overloaded',
        attemptState: 'released',
        settlement: 'not_sent',
        counted: false,
        next: 'failover',
        error: problem('overloaded', `the instance refuses work for now (HTTP ${outcome.status})`),
      };
    case 'not_sent':
      return {
        ambiguity: 'not_sent',
        attemptState: 'released',
        settlement: 'not_sent',
        counted: false,
        next: 'failover',
        error: problem('connect_failed', outcome.message),
      };
    case 'unsent':
      return {
        ambiguity: 'not_sent',
        attemptState: 'released',
        settlement: 'not_sent',
        counted: false,
        next: 'retry',
        error: problem('connect_failed', 'the call was stopped before it was sent'),
      };
    case 'withheld':
      return withheld(facts);
    case 'abandoned':
      return {
        ...delivered(facts, {
          ambiguity: 'ambiguous',
          settlement: 'lost',
          next: 'retry',
          error: problem('contact_lost', 'the worker that made the call stopped'),
        }),
        ...(facts.retryMax > 0 ? { counted: false, next: 'retry' } : {}),
      };
    case 'cancelled':
      return {
        ambiguity: 'ambiguous',
        attemptState: 'lost',
        settlement: 'lost',
        counted: false,
        next: 'cancelled',
        error: problem('run_cancelled', 'the call was cancelled'),
      };
  }
}
