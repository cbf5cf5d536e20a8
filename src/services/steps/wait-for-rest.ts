/**
 * A workflow's timer is an image of the database's clock, and fires too early when the other one is ahead. Told to wait
 * until the same moment it would come back at once, again and again: the rest is waited for by coming again later.
 */
import type { StepKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { readStep } from '../../db/step/step.ts';
import type { StepExecution, WaitingStep } from './step-end.ts';

/** Clocks differ by no more; with more left, somebody has woken the step. */
const clocksDifferMs = 60_000;

/** @param remainingMs in which coming again is possible at all */
export async function waitForRest(
  db: Db,
  key: StepKey,
  waiting: WaitingStep,
  remainingMs: number,
): Promise<StepExecution | WaitingStep> {
  if (waiting.until === null) return waiting;
  const { wait_left_ms = null } = (await readStep(db, key)) ?? {};
  if (wait_left_ms === null || wait_left_ms > Math.min(clocksDifferMs, remainingMs / 2)) return waiting;
  const delayMs = Math.max(1, Math.ceil(wait_left_ms));
  const error = { code: 'unavailable', message: `the wait ends in ${delayMs} ms` };
  return { kind: 'retry', error, delayMs };
}
