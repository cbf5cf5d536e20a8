import { setTimeout as pause } from 'node:timers/promises';
import { toAbortSignal } from '../../core/cancellation.ts';
import { isHeld, loseOpenAttempt, type StepKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { callKeyOf, type StepControl } from './call-for-step.ts';

const pauseMs = 250;

/**
 * Waits while somebody makes the call of a step: it was begun in a batch, or Temporal has given the step out once more
 * because it had not heard of it. A process that is gone holds it until its lease is over; one whose step is cancelled is
 * taken it from, and ends it.
 *
 * @returns with what is left of the step's time
 */
export async function waitForHolder(db: Db, key: StepKey, control: StepControl): Promise<StepControl> {
  const name = callKeyOf(key);
  const { signal } = control;
  const deadline = performance.now() + control.remainingMs;
  while (await isHeld(db, [name])) {
    if (signal.reason === 'cancelled') await loseOpenAttempt(db, name);
    if (signal.aborted || performance.now() > deadline) break;
    await pause(pauseMs, undefined, { signal: toAbortSignal(signal) }).catch(() => undefined);
  }
  return { ...control, remainingMs: Math.max(0, deadline - performance.now()) };
}
