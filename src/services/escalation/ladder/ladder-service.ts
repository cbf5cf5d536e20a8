/** Ladders as workflows use them: the row is the position, and each call moves it by one transition at most. */
import { interruptLadder } from '../../../core/ladder/drive.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import type { Ctx } from '../../context.ts';
import { type Progress, storeProgress } from './progress.ts';
import { type Advanced, readLadder, readPosition } from './stored-ladder.ts';
import { requireEscalation } from './transition.ts';

export interface StopRequest {
  readonly escalation_id: string;
  /** The transition that the workflow expects; at another one the current position is returned. */
  readonly transition: number;
  readonly event: { readonly type: 'timed_out' } | { readonly type: 'cancel_requested' };
}

/** @returns null when the ladder continues: while its review is open, the time of the review applies */
function endOf(row: EscalationRow, { type }: StopRequest['event']): Progress | null {
  const ladder = readLadder(row);
  const event = { kind: type, level: row.escalation_level };
  if (row.state === 'running') return { ...interruptLadder(ladder, type), event };
  if (type === 'timed_out') return null;
  const error = ladder.history.at(-1)?.error ?? null;
  const outcome = { kind: 'stopped', reason: 'cancelled', error } as const;
  return { next: { ...ladder, decided: null }, event, outcome };
}

/**
 * Ends a ladder from outside: its time is over, which opens a review, or its result is no longer wanted. At another
 * transition it changes nothing and returns the current position. @throws AppError `not_found`
 */
export async function stopLadder(ctx: Ctx, request: StopRequest): Promise<Advanced> {
  const { db } = ctx;
  const row = await requireEscalation(ctx, request.escalation_id);
  const isOpen = row.state === 'running' || row.state === 'in_review';
  const progress = isOpen && row.transition === request.transition ? endOf(row, request.event) : null;
  if (progress === null) return readPosition(db, row);
  await storeProgress(ctx, row, progress);
  return readPosition(db, await requireEscalation(ctx, request.escalation_id));
}
