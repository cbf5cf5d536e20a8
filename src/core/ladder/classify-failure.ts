/**
 * What kind of failure a call ended with: transient (the same again, no advice), real (the ladder), malformed (a
 * model answered what does not fit its schema: asked once more), config (a person of operations), budget (a person
 * who can raise it).
 */
import { type ErrorCode, errorTable } from '../../contracts/errors.ts';
import type { BudgetRefusal } from '../../contracts/money.ts';
import type { Failure } from '../../contracts/primitives.ts';
import { errorCodeOf } from '../call/outcome.ts';

export type FailureClass = 'transient' | 'real' | 'malformed' | 'config' | 'budget';

export interface FailureFacts {
  readonly code: ErrorCode;
  /** HTTP status that the instance answered, where it did. */
  readonly status?: number | undefined;
  /** The call went to a model of the ladder, not to the step's own capability. */
  readonly from_model?: boolean;
}

/** Codes that are neither transient because they may succeed later, nor real. */
const classByCode: Partial<Record<ErrorCode, FailureClass>> = {
  unauthenticated: 'config',
  forbidden: 'config',
  not_found: 'config',
  // It may have run: only a person may have it sent again.
  delivery_unknown: 'config',
  ceiling_too_low: 'budget',
  budget_exhausted: 'budget',
  step_timeout: 'transient',
};

/** What a model's refusal with this status means where it is not about the input. Refusals that pass are none. */
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

/** What a model's capability calls its errors, by its contract, where that says more than the status. */
const classByModelError: ReadonlyMap<string | undefined, FailureClass> = new Map([
  ['model_config', 'config'],
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

/** The budget that had no room: of a run, or of a day. Undefined where it was the call's own ceiling. */
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

/** Whether the input is to blame for the failure, or the answer to this input: another input may cure it. */
export function isCorrectable(code: string): boolean {
  return correctable.has(code);
}
