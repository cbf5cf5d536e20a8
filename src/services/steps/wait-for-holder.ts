import { setTimeout as pause } from 'node:timers/promises';
import { toAbortSignal } from '../../core/cancellation.ts';
import { isHeld, loseOpenAttempt, type StepKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { callKeyOf, type StepControl } from './call-for-step.ts';

const pauseMs = 250;

/**
 * Waits while another process makes the call of a step: it was begun in a batch there. A process that is gone holds it
 * until its lease is over; one whose step is cancelled is taken it from, and ends it.
 */
export async function waitForHolder(
  db: Db,
  key: StepKey,
  { signal, remainingMs }: Pick<StepControl, 'signal' | 'remainingMs'>,
): Promise<void> {
  const name = callKeyOf(key);
  const deadline = performance.now() + remainingMs;
  while (await isHeld(db, name)) {
    if (signal.reason === 'cancelled') await loseOpenAttempt(db, name);
    if (signal.aborted || performance.now() > deadline) return;
    await pause(pauseMs, undefined, { signal: toAbortSignal(signal) }).catch(() => undefined);
  }
}
