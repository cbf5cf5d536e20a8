/** A step that only waits. Its end is by the clock of the database. */

import { parseDuration } from '../../core/duration.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import type { StandingStep } from '../../db/step/step.ts';
import { answerStep, keepWaiting } from '../../db/step/step-open.ts';
import type { StepUnit } from '../run-data/step-unit.ts';
import { readEnd, type StepExecution, type WaitingStep } from './step-end.ts';

export async function executePause(
  db: Db,
  { step, key }: StepUnit,
  standing: StandingStep | undefined,
): Promise<StepExecution | WaitingStep> {
  if (standing !== undefined) return endPause(db, key, standing);
  const for_ms = parseDuration(step.definition.wait ?? '0s');
  const held = await keepWaiting(db, key, { awaiting: 'time', until: null, for_ms, begins: true });
  if (held === undefined) return readEnd(db, key);
  return { kind: 'waiting', awaiting: 'time', until: held.wait_until, ref: null };
}

async function endPause(
  db: Db,
  key: StepKey,
  { wait_until, wait_left_ms }: StandingStep,
): Promise<StepExecution | WaitingStep> {
  if ((wait_left_ms ?? 0) > 0) return { kind: 'waiting', awaiting: 'time', until: wait_until, ref: null };
  await answerStep(db, key, { state: 'succeeded', output: null, data: {} });
  return readEnd(db, key);
}
