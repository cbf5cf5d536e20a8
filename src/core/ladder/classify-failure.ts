/**
 * What kind of failure a call ended with: transient (the same again, no advice), real (the ladder), malformed (a
 * model answered what does not fit its schema: asked once more), config (a person of operations), budget (a
 * person who can raise it).
 */
import { type ErrorCode, errorTable } from '../../contracts/errors.ts';

export type FailureClass = 'transient' | 'real' | 'malformed' | 'config' | 'budget';

export interface FailureFacts {
  readonly code: ErrorCode;
  /** HTTP status that the instance answered, where it did. */
  readonly status?: number;
  /** The call went to a model of the ladder, not to the step's own capability. */
  readonly from_model?: boolean;
  /** Its text is on the operator's list of transient errors. */
  readonly is_listed?: boolean;
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

/** What a refusal with this status means where it is not about the input. */
const classByStatus: Readonly<Record<number, FailureClass>> = {
  408: 'transient',
  409: 'transient',
  429: 'transient',
};
const classByModelStatus: Readonly<Record<number, FailureClass>> = {
  ...classByStatus,
  401: 'config',
  403: 'config',
  404: 'config',
};

export function classifyFailure({ code, status, from_model, is_listed }: FailureFacts): FailureClass {
  if (code === 'input_rejected') {
    if (is_listed) return 'transient';
    return (from_model ? classByModelStatus : classByStatus)[status ?? 422] ?? 'real';
  }
  if (code === 'output_invalid' && from_model) return 'malformed';
  return classByCode[code] ?? (errorTable[code].retryable ? 'transient' : 'real');
}
