/** A transition that runs the input that a person wants. */

import { historyTextOf } from '../../../core/ladder/error-text.ts';
import { humanLevel } from '../../../core/ladder/labels.ts';
import { createAttempt } from '../../../core/ladder/machine.ts';
import { type Execution, endExecution } from '../levels/execution.ts';
import { fingerprintOf } from './fingerprint.ts';
import { runCorrection } from './run-correction.ts';
import { findCorrectionFault, readStepTask } from './step-task.ts';
import { verdictOf } from './store-progress.ts';
import type { DecidedInput, StoredLadder } from './stored-ladder.ts';
import type { AdvanceDependencies, Turn, Work } from './transition.ts';

/** A person's input: checked and run like any other, and asked about again when it does not help. */
export async function runDecided(
  dependencies: AdvanceDependencies,
  { row, ladder, call, now }: Turn,
  { input, review_id, remember }: DecidedInput,
): Promise<Work> {
  const task = await readStepTask(dependencies, row);
  const fault = findCorrectionFault(task, input, true);
  const correction = { input, source: `review:${review_id}`, choice: 0 };
  const ran =
    fault === null
      ? (await runCorrection(dependencies, task, correction, call.signal)).end
      : { kind: 'failed' as const, class: 'real' as const, error: { ...fault } };
  if (ran.kind === 'interrupted') return ran.delayMs;
  const execution: Execution = endExecution(humanLevel, ran, { input });
  const event = { kind: 'executed', level: humanLevel, outcome: ran.kind, review_id };
  const common = { execution, event, signals: task.signals, spec: task.spec };
  if (ran.kind !== 'failed') {
    const verdict = { kind: 'succeeded' as const, lesson: null, teaches: remember };
    return { ...common, verdict, next: { ...ladder, decided: null } };
  }
  const error = historyTextOf(ran.error);
  const attempt = { level: humanLevel, attempted_at: now, error, fingerprint: fingerprintOf(error) };
  const next: StoredLadder = {
    ...ladder,
    decided: null,
    history: [...ladder.history, createAttempt(attempt)],
    command: { type: 'stop', reason: 'exhausted', error },
  };
  return { ...common, next, verdict: verdictOf(next) };
}
