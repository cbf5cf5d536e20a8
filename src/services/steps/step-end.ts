/** How an execution of a step ends, whatever its kind, and the end that somebody else has written. */
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { Awaiting } from '../../contracts/run.ts';
import type { SuccessfulAttempt } from '../../core/call/types.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { readRunEnd } from '../../db/run/run.ts';
import { endStep, readStep, type StandingStep } from '../../db/step/step.ts';

/** Whatever it says is in the database already. */
export type StepExecution =
  | {
      readonly kind: 'succeeded';
      readonly output: Json;
      readonly attempt: SuccessfulAttempt | null;
    }
  | { readonly kind: 'failed' | 'unknown'; readonly error: Failure }
  | { readonly kind: 'retry'; readonly error: Failure; readonly delayMs: number }
  /** By a person. */
  | { readonly kind: 'skipped' }
  | { readonly kind: 'cancelled' };

/** What else a workflow has to know to wait for it. */
export interface WaitReference {
  readonly review_id?: string;
  readonly run_id?: string;
}

export interface WaitingStep {
  readonly kind: 'waiting';
  readonly awaiting: Awaiting;
  /** When it is over at the latest; null = only when somebody says so. */
  readonly until: Date | null;
  readonly ref: WaitReference | null;
}

const takenOver: Failure = { code: 'contact_lost', message: 'a later attempt has taken over' };

/** The end that a row tells; null while nobody has written one. */
export function endOf({ state, output, error }: StandingStep): StepExecution | null {
  switch (state) {
    case 'succeeded':
    case 'reused':
      return { kind: 'succeeded', output, attempt: null };
    case 'failed':
    case 'unknown':
      return { kind: state, error: error ?? takenOver };
    case 'skipped':
    case 'cancelled':
      return { kind: state };
    default:
      return null;
  }
}

/** While nobody has written an end, another attempt is on its way: come again. */
export async function readEnd(db: Db, key: StepKey): Promise<StepExecution> {
  const row = await readStep(db, key);
  // An item that never began of a run that has ended: nobody wrote its end.
  if (row === undefined && (await readRunEnd(db, key.run_id)) !== undefined) return { kind: 'cancelled' };
  const end = row === undefined ? null : endOf(row);
  return end ?? { kind: 'retry', error: row?.error ?? takenOver, delayMs: 1_000 };
}

/** Ends a step that nothing else ends. A step that had ended stays: then that end is the answer. */
export async function failStep(db: Db, key: StepKey, error: Failure): Promise<StepExecution> {
  return (await endStep(db, key, 'failed', error)) ? { kind: 'failed', error } : readEnd(db, key);
}
