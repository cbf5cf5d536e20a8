/**
 * Executes a corrected input of a step by the ordinary path: it is stored as the step's next revision first, so that
 * whoever repeats the transition runs the same input under the same key. Success is what the capability says.
 */
import type { Json } from '../../../contracts/primitives.ts';
import type { CancelSignal } from '../../../core/cancellation.ts';
import { classOfCorrection } from '../../../core/ladder/classify-failure.ts';
import type { Db } from '../../../db/connect.ts';
import { storeStepRevision } from '../../../db/step/step-revision.ts';
import type { ExecuteRevision } from '../../steps/execute-step.ts';
import type { ExecutionEnd } from '../levels/execution.ts';
import type { StepTask } from './step-task.ts';

export interface CorrectionDependencies {
  readonly db: Db;
  readonly executeRevision: ExecuteRevision;
}

export interface Correction {
  readonly input: Json;
  /** `repair`, the id of a skill, the label of a level, or `review:<id>`. */
  readonly source: string;
  /** 0 for the first of the transition. */
  readonly choice: number;
}

/** All automated time of a ladder; its workflow ends it. */
const remainingMs = 30 * 60_000;
/** Waits for an instance are spaced as if the step had come a few times before. */
const round = 4;

/** @returns the input that was executed, which is the stored one when the transition is repeated, and how it ended */
export async function runCorrection(
  { db, executeRevision }: CorrectionDependencies,
  { row, step }: StepTask,
  { input, source, choice }: Correction,
  signal: CancelSignal,
): Promise<{ readonly input: Json; readonly source: string; readonly end: ExecutionEnd }> {
  const stored = await storeStepRevision(db, {
    ...step,
    input,
    source,
    escalation_id: row.escalation_id,
    transition: row.transition,
    choice,
  });
  const request = { ...step, revision: stored.revision };
  const done = await executeRevision(request, { round, remainingMs, signal });
  const ran = { input: stored.input, source: stored.source };
  switch (done.kind) {
    case 'succeeded':
      return { ...ran, end: { kind: 'succeeded' } };
    case 'failed':
    case 'unknown':
      return { ...ran, end: { kind: 'failed', class: classOfCorrection(done.error), error: done.error } };
    case 'retry':
      return { ...ran, end: { kind: 'interrupted', delayMs: done.delayMs } };
    case 'skipped':
    case 'cancelled':
      return { ...ran, end: { kind: 'interrupted', delayMs: 1_000 } };
  }
}
