/** Ends a ladder from outside: its time is over, which asks a person, or whoever wanted it does not any more. */
import { interruptLadder } from '../../../core/ladder/drive.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { requireEscalation } from './advance.ts';
import type { TaskDependencies } from './escalated-task.ts';
import { type Advanced, readPosition } from './ladder-position.ts';
import { type Progress, storeProgress } from './store-progress.ts';
import { readLadder } from './stored-ladder.ts';

export interface StopRequest {
  readonly escalation_id: string;
  /** At which whoever asks believes it to be; another one answers where it stands. */
  readonly transition: number;
  readonly event: { readonly type: 'timed_out' } | { readonly type: 'cancel_requested' };
}

/** Null when it goes on: one that asks a person has all the time that the person has. */
function endOf(row: EscalationRow, { type }: StopRequest['event']): Progress | null {
  const ladder = readLadder(row);
  const event = { kind: type, level: row.escalation_level };
  if (row.state === 'running') return { ...interruptLadder(ladder, type), event };
  if (type === 'timed_out') return null;
  const error = ladder.history.at(-1)?.error ?? null;
  const outcome = { kind: 'stopped', reason: 'cancelled', error } as const;
  return { next: { ...ladder, decided: null }, event, outcome };
}

export async function stopLadder(dependencies: TaskDependencies, request: StopRequest): Promise<Advanced> {
  const { db } = dependencies;
  const row = await requireEscalation(dependencies, request.escalation_id);
  const isOpen = row.state === 'running' || row.state === 'in_review';
  const progress = isOpen && row.transition === request.transition ? endOf(row, request.event) : null;
  if (progress === null) return readPosition(db, row);
  await storeProgress(dependencies, row, progress);
  return readPosition(db, await requireEscalation(dependencies, request.escalation_id));
}
