/**
 * A ladder's transition that Temporal gives out once more, because it had not heard of it for a while, may still be
 * made: its model or its step is being called, and paid. The leases in the database say so.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type CancelSignal, toAbortSignal } from '../../../core/cancellation.ts';
import { isHeld } from '../../../db/attempt/attempt.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { listTransitionRevisions } from '../../../db/step/step-revision.ts';
import { callKeyOf } from '../../steps/call-for-step.ts';
import { modelKeyOf } from './ladder-ports.ts';
import { stepOf } from './stored-ladder.ts';

const pauseMs = 250;
/** Between the call of a model and that of its step nobody holds either. */
const looksInTurn = 2;

/** Ends when nobody makes the transition of this row any more, or nobody wants it. */
export async function waitForMaker(db: Db, row: EscalationRow, signal: CancelSignal): Promise<void> {
  for (let free = 0; free < looksInTurn && !signal.aborted; ) {
    free = (await isHeld(db, await listCallKeys(db, row))) ? 0 : free + 1;
    if (free < looksInTurn)
      await pause(pauseMs, undefined, { signal: toAbortSignal(signal) }).catch(() => undefined);
  }
}

/** Under which the calls of a transition stand: its model's, and its step's with each input that it has stored. */
async function listCallKeys(db: Db, row: EscalationRow): Promise<readonly string[]> {
  const step = stepOf(row);
  if (step === null) return [modelKeyOf(row)];
  const stored = await listTransitionRevisions(db, row.escalation_id, row.transition);
  const revisions = [0, ...stored.map(({ revision }) => revision)];
  return [modelKeyOf(row), ...revisions.map((revision) => callKeyOf({ ...step, revision }))];
}
