/**
 * Executes a corrected input of a step by the ordinary path: it is stored as the step's next revision first, so that
 * whoever repeats the transition runs the same input under the same key. Success is what the capability says.
 */
import type { CancelSignal } from '../../../core/cancellation.ts';
import { classOfCorrection } from '../../../core/ladder/classify-failure.ts';
import {
  interruptionMs,
  type NumberedCorrection,
  type RanCorrection,
} from '../../../core/ladder/execute-correction.ts';
import type { ExecutionEnd } from '../../../core/ladder/execution.ts';
import { ladderMs } from '../../../core/ladder/limits.ts';
import type { Db } from '../../../db/connect.ts';
import { storeStepRevision } from '../../../db/step/step-revision.ts';
import type { ExecuteRevision } from '../../steps/execute-step.ts';
import type { StepExecution } from '../../steps/step-end.ts';
import type { EscalatedTask } from '../ladder/escalated-task.ts';

export interface CorrectionDependencies {
  readonly db: Db;
  readonly executeRevision: ExecuteRevision;
}

/** Waits for an instance are spaced as if the step had come a few times before. */
const round = 4;

export interface CorrectionRun {
  readonly task: EscalatedTask;
  readonly correction: NumberedCorrection;
  readonly signal: CancelSignal;
}

/** @returns what was executed, which is the stored input when the transition is repeated, and how it ended */
export async function runCorrection(
  { db, executeRevision }: CorrectionDependencies,
  { task: { row, step }, correction, signal }: CorrectionRun,
): Promise<RanCorrection> {
  const { escalation_id, transition } = row;
  const stored = await storeStepRevision(db, { ...step, ...correction, escalation_id, transition });
  const request = { ...step, revision: stored.revision };
  // Its workflow ends the ladder in time.
  const done = await executeRevision(request, { round, remainingMs: ladderMs, signal });
  return { input: stored.input, source: stored.source, end: toExecutionEnd(done) };
}

function toExecutionEnd(done: StepExecution): ExecutionEnd {
  switch (done.kind) {
    case 'succeeded':
      return { kind: 'succeeded' };
    case 'failed':
    case 'unknown':
      return { kind: 'failed', class: classOfCorrection(done.error), error: done.error };
    case 'retry':
      return { kind: 'interrupted', delayMs: done.delayMs };
    case 'skipped':
    case 'cancelled':
      return { kind: 'interrupted', delayMs: interruptionMs };
  }
}
