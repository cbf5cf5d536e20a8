/**
 * The retry table: what an outcome means for the attempt, the budget and the step, and what it shows about the
 * instance. Each kind of failure has one response: another instance at once (connect error, 5xx, a temporary refusal),
 * a later attempt (lost contact, timeout, or all instances tried), the same call again (a wrong answer, if the step asks
 * for that), or the end (refused input, too large). A temporary
 * refusal is no evidence about the input: the same request may succeed later or elsewhere. If a capability answers 422
 * for a temporary condition, its operator lists the messages.
 */
import type { ErrorCode } from '../contracts/errors.ts';
import type { Failure, JsonObject } from '../contracts/primitives.ts';
import type { Ambiguity, AttemptState } from '../contracts/run-step.ts';
import { formatDuration } from '../duration.ts';
import type { Settlement } from '../money/reservation.ts';
import { type AnsweredError, type CallOutcome, detailsOf, reportOf, toHttpFailure } from './outcome.ts';
import { isWrongAnswer } from './wrong-answer.ts';

export interface DeliveryFacts {
  /** Counted failures of this key before this attempt. */
  readonly countedBefore: number;
  /** Counted failures that are retried; 0 = delivered at most once. */
  readonly retryMax: number;
  /** Lower-case fragments of messages that mark a temporary refusal. Default: none. */
  readonly transientTexts?: readonly string[];
  /** Wrong answers before this attempt. Default: none. */
  readonly wrongBefore?: number;
  /** How many of them are asked for again. Default: none. */
  readonly wrongMax?: number | undefined;
  /** Whether parts of the result have come: then work was done, whatever the answer is. Default: none has. */
  readonly hasBegun?: boolean | undefined;
}

type CodedFailure = Failure & { readonly code: ErrorCode };

/** What an outcome shows about the instance, independent of its meaning for the call. */
interface Evidence {
  /** The instance failed; its estimated success rate drops. */
  readonly blames: boolean;
  /** Transport errors, timeouts and 5xx, which open a breaker. */
  readonly trips: boolean;
  /** Whether the outcome shows anything about the instance's health; a cancel does not. */
  readonly says: boolean;
}

export interface Verdict extends Evidence {
  readonly ambiguity: Ambiguity | null;
  readonly attemptState: AttemptState;
  readonly settlement: Settlement;
  /** Whether the failure counts against `retry.max`. */
  readonly counted: boolean;
  /**
   * succeeded: done. failover: another instance now. retry: a later attempt. again: the same call now, with the fault of
   * the answer. failed, unknown, cancelled: the end.
   */
  readonly next: 'succeeded' | 'failover' | 'retry' | 'again' | 'failed' | 'unknown' | 'cancelled';
  readonly error: CodedFailure | null;
}

const works: Evidence = { blames: false, trips: false, says: true };
const wrong: Evidence = { blames: true, trips: false, says: true };
const broken: Evidence = { blames: true, trips: true, says: true };
const busy: Evidence = { blames: false, trips: true, says: true };
const silent: Evidence = { blames: false, trips: false, says: false };

interface OutcomeRow extends Pick<Verdict, 'ambiguity' | 'settlement' | 'next'> {
  readonly code: ErrorCode;
  /** The request reached an instance and failed for a reason that another instance or time may cure. */
  readonly isCounted?: boolean;
  readonly evidence: Evidence;
}

const lost: OutcomeRow = {
  code: 'contact_lost',
  ambiguity: 'ambiguous',
  settlement: 'lost',
  next: 'retry',
  isCounted: true,
  evidence: broken,
};
const failed: OutcomeRow = {
  code: 'capability_failed',
  ambiguity: 'answered',
  settlement: 'failed',
  next: 'failover',
  isCounted: true,
  evidence: broken,
};
const refused: OutcomeRow = {
  code: 'input_rejected',
  ambiguity: 'rejected',
  settlement: 'failed',
  next: 'failed',
  evidence: works,
};
/** A temporary refusal, which is no evidence about the input. */
const postponed: OutcomeRow = { ...refused, code: 'capability_failed', next: 'failover', isCounted: true };
/** A repeat of the request would get the same answer. */
const useless: OutcomeRow = {
  code: 'output_invalid',
  ambiguity: 'answered',
  settlement: 'answered',
  next: 'failed',
  evidence: wrong,
};
const unsent: OutcomeRow = {
  code: 'connect_failed',
  ambiguity: 'not_sent',
  settlement: 'not_sent',
  next: 'retry',
  evidence: silent,
};

const table: Record<Exclude<CallOutcome['kind'], 'answered'>, OutcomeRow> = {
  rejected: refused,
  malformed: { ...useless, code: 'response_invalid', settlement: 'broken_off' },
  output_invalid: useless,
  too_large: { ...useless, code: 'output_too_large', evidence: works },
  failed,
  invalid: { ...failed, code: 'response_invalid' },
  lost,
  timeout: { ...lost, code: 'attempt_timeout' },
  abandoned: { ...lost, evidence: silent },
  cancelled: { ...lost, code: 'run_cancelled', next: 'cancelled', isCounted: false, evidence: silent },
  overloaded: { ...unsent, code: 'overloaded', ambiguity: 'overloaded', next: 'failover', evidence: busy },
  not_sent: { ...unsent, next: 'failover', evidence: broken },
  // The owner makes it again when there is room, which its claim finds out.
  exhausted: {
    code: 'budget_reserved',
    ambiguity: 'answered',
    settlement: 'broken_off',
    next: 'retry',
    evidence: silent,
  },
  unsent,
  withheld: { ...unsent, code: 'contact_lost', next: 'failed' },
};

/**
 * The errors of attempts that count against `retry.max`. An attempt that ended with its worker has such an error too, but
 * does not count.
 */
export const countedErrors: ReadonlySet<string> = new Set(
  Object.values(table).flatMap(({ code, isCounted = false }) => (isCounted ? [code] : [])),
);

const success: Verdict = {
  ...works,
  ambiguity: 'answered',
  attemptState: 'settled',
  settlement: 'answered',
  counted: false,
  next: 'succeeded',
  error: null,
};

/** Whether lost attempts of a killed process have already used up the retries. */
export function isExhausted({ countedBefore, retryMax }: DeliveryFacts): boolean {
  return countedBefore > retryMax;
}

export function judgeOutcome(outcome: CallOutcome, facts: DeliveryFacts): Verdict {
  if (outcome.kind === 'answered') return success;
  const { code, isCounted = false, evidence, ...row } = rowOf(outcome, facts);
  const settlement = settlementOf(row, outcome, facts);
  const error =
    outcome.kind === 'rejected' || outcome.kind === 'failed'
      ? toHttpFailure(code, outcome)
      : withDetails({ code, message: describe(outcome, facts) }, outcome);
  const attemptState = attemptStateOf(settlement);
  const verdict: Verdict = { ...row, attemptState, settlement, counted: isCounted, error, ...evidence };
  if (isWrongAnswer(error) && (facts.wrongBefore ?? 0) < (facts.wrongMax ?? 0)) {
    return { ...verdict, next: 'again', counted: false };
  }
  const isOnce = facts.retryMax === 0;
  if (isOnce && (outcome.kind === 'withheld' || (isCounted && row.ambiguity === 'ambiguous'))) {
    const message = `${error.message}; retry.max is 0, so it is not sent again`;
    return { ...verdict, next: 'unknown', error: { code: 'delivery_unknown', message } };
  }
  if (outcome.kind === 'abandoned') return { ...verdict, counted: false }; // the capability did not fail
  const isLast = isCounted && facts.countedBefore + 1 > facts.retryMax;
  return isLast ? { ...verdict, next: 'failed' } : verdict;
}

function withDetails(failure: CodedFailure, outcome: CallOutcome): CodedFailure {
  const details = { ...detailsOf(reportOf(outcome)), ...findingsOf(outcome) };
  return Object.keys(details).length === 0 ? failure : { ...failure, details };
}

/** The violations of the schema, for the instance that is asked again. */
function findingsOf(outcome: CallOutcome): { readonly errors?: JsonObject[] } {
  if (outcome.kind !== 'output_invalid' || outcome.errors === undefined) return {};
  return { errors: outcome.errors.map((finding) => ({ ...finding })) };
}

function rowOf(
  outcome: Exclude<CallOutcome, { kind: 'answered' }>,
  { transientTexts = [] }: DeliveryFacts,
): OutcomeRow {
  const isPostponed = outcome.kind === 'rejected' && isPassing(outcome, transientTexts);
  return isPostponed ? postponed : table[outcome.kind];
}

/**
 * An error answer means that the call was not completed, not that no work was done: parts of the result prove work, and
 * so does a reported cost, or the report that it is unknown.
 */
function settlementOf(
  { settlement }: Pick<OutcomeRow, 'settlement'>,
  outcome: CallOutcome,
  { hasBegun = false }: DeliveryFacts,
): Settlement {
  const isRefusal = settlement === 'failed' || outcome.kind === 'overloaded';
  const { cost_usd = 0, cost_unknown = false } = reportOf(outcome) ?? {};
  if (isRefusal && (hasBegun || cost_unknown)) return 'broken_off';
  return isRefusal && cost_usd > 0 ? 'failed' : settlement;
}

/**
 * R6: whether the instance received the call and did not complete it, so that later attempts prefer other instances.
 */
export function hasFailedCall({ says, next }: Verdict): boolean {
  return says && next !== 'succeeded';
}

function attemptStateOf(settlement: Settlement): AttemptState {
  if (settlement === 'lost') return 'lost';
  return settlement === 'not_sent' ? 'released' : 'settled';
}

function describe(
  outcome: Exclude<CallOutcome, { kind: 'answered' | 'rejected' | 'failed' }>,
  { countedBefore, retryMax }: DeliveryFacts,
): string {
  switch (outcome.kind) {
    case 'malformed':
    case 'invalid':
    case 'output_invalid':
    case 'lost':
    case 'not_sent':
      return outcome.message;
    case 'too_large':
      return `the answer is larger than ${outcome.limitBytes} bytes; write large data to the media store`;
    case 'timeout':
      return `no answer within ${formatDuration(outcome.timeoutMs)}`;
    case 'overloaded':
      return `the instance refuses work for now (HTTP ${outcome.status}${outcome.message === undefined ? '' : `: ${outcome.message}`})`;
    case 'exhausted':
      return 'the call was stopped on its way, because its budgets have no more room for it';
    case 'unsent':
      return 'the call was stopped before it was sent';
    case 'abandoned':
      return 'the worker that made the call stopped';
    case 'cancelled':
      return 'the call was cancelled';
    case 'withheld':
      return retryMax === 0
        ? 'contact was lost after it was sent'
        : `contact was lost ${countedBefore} times; retry.max is ${retryMax}`;
  }
}

/** The request took too long to arrive, or another operation is in progress. kindOfStatus handles 429 and 503. */
const passingStatuses: ReadonlySet<number> = new Set([408, 409]);

/** @param listed lower-case fragments, of which the message contains one */
export function isPassing({ status, message }: AnsweredError, listed: readonly string[]): boolean {
  if (passingStatuses.has(status)) return true;
  const text = message.toLowerCase();
  return listed.some((part) => text.includes(part));
}

/** @param setting fragments separated by | */
export function readTransientTexts(setting: string): readonly string[] {
  return setting.split('|').flatMap((part) => part.trim().toLowerCase() || []);
}
