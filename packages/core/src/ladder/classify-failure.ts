/**
 * The class of a call's failure: transient (repeat it, no advice), real (the ladder), malformed (a model's answer does
 * not fit its schema: ask once more), config (an operator), budget (a person who can raise it).
 */

import { errorCodeOf } from '../call/outcome.ts';
import { type ErrorCode, errorTable } from '../contracts/errors.ts';
import type { BudgetRefusal } from '../contracts/money.ts';
import type { Failure } from '../contracts/primitives.ts';

export type FailureClass = 'transient' | 'real' | 'malformed' | 'config' | 'budget';

export interface FailureFacts {
  readonly code: ErrorCode;
  /** HTTP status of the instance's answer, if any. */
  readonly status?: number | undefined;
  /** The call went to a model of the ladder, not to the step's own capability. */
  readonly from_model?: boolean;
}

/** Codes that are neither transient nor real. */
const classByCode: Partial<Record<ErrorCode, FailureClass>> = {
  unauthenticated: 'config',
  forbidden: 'config',
  not_found: 'config',
  // The call may have run: only a person may resend it.
  delivery_unknown: 'config',
  ceiling_too_low: 'budget',
  budget_exhausted: 'budget',
  step_timeout: 'transient',
};

/**
 * The class of a model's refusal with this status, where it is not about the input. Temporary refusals are not
 * included.
 */
const classByModelStatus: ReadonlyMap<number | undefined, FailureClass> = new Map([
  [401, 'config'],
  [403, 'config'],
  [404, 'config'],
]);

export function classifyFailure({ code, status, from_model }: FailureFacts): FailureClass {
  if (code === 'input_rejected') return (from_model && classByModelStatus.get(status)) || 'real';
  if (code === 'output_invalid' && from_model) return 'malformed';
  return classByCode[code] ?? (errorTable[code].retryable ? 'transient' : 'real');
}

/**
 * The class of error codes that the contract of a model's capability defines, where they are more exact than the
 * status.
 */
const classByModelError: ReadonlyMap<string | undefined, FailureClass> = new Map([
  ['provider_config', 'config'],
  ['model_answer_invalid', 'malformed'],
]);

/** The class of a failed call of a level's model. */
export function classOfModelCall(error: Failure): FailureClass {
  const known = classByModelError.get(errorCodeOf(error));
  return known ?? classifyFailure({ ...factsOf(error), from_model: true });
}

/** The class of a failed execution of a corrected input. */
export function classOfCorrection(error: Failure): FailureClass {
  return classifyFailure(factsOf(error));
}

/** The run or daily budget that had no room. Undefined when the call's own ceiling was the limit. */
export function refusalOf({ code, details }: Failure): BudgetRefusal | undefined {
  return code === 'budget_exhausted' ? (details as unknown as BudgetRefusal) : undefined;
}

function factsOf({ code, status }: Failure): FailureFacts {
  return { code: code as ErrorCode, status };
}

const correctable: ReadonlySet<string> = new Set<ErrorCode>([
  'input_rejected',
  'input_invalid',
  'output_invalid',
]);

/** Whether the failure is due to the input, or to the answer to this input: another input may succeed. */
export function isCorrectable(code: string): boolean {
  return correctable.has(code);
}
