/** Ends a ladder from outside: its time is over, which asks a person, or whoever wanted it does not any more. */
import { applyLadder } from '../../../core/ladder/machine.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { requireEscalation } from './advance.ts';
import { type Advanced, readPlace } from './ladder-position.ts';
import type { TaskDependencies } from './step-task.ts';
import { type Progress, storeProgress, verdictOf } from './store-progress.ts';
import { readLadder } from './stored-ladder.ts';

export interface StopRequest {
  readonly escalation_id: string;
  /** At which whoever asks believes it to be; another one answers where it stands. */
  readonly transition: number;
  readonly event: { readonly type: 'timed_out' } | { readonly type: 'cancel_requested' };
}

function endOf(row: EscalationRow, { type }: StopRequest['event']): Progress | null {
  const ladder = readLadder(row);
  const event = { kind: type, level: row.escalation_level };
  if (row.state === 'running' && ladder.decided === null) {
    const next = { ...ladder, ...applyLadder(ladder, { type }) };
    return { next, event, verdict: verdictOf(next) };
  }
  const next = { ...ladder, decided: null };
  const error = ladder.history.at(-1)?.error ?? null;
  if (type === 'cancel_requested') {
    return { next, event, verdict: { kind: 'stopped', reason: 'cancelled', error } };
  }
  return row.state === 'running'
    ? { next, event, verdict: { kind: 'stopped', reason: 'time', error } }
    : null;
}

export async function stopLadder(dependencies: TaskDependencies, request: StopRequest): Promise<Advanced> {
  const { db } = dependencies;
  const row = await requireEscalation(dependencies, request.escalation_id);
  const isOpen = row.state === 'running' || row.state === 'in_review';
  const progress = isOpen && row.transition === request.transition ? endOf(row, request.event) : null;
  if (progress === null) return readPlace(db, row);
  await storeProgress(dependencies, row, progress);
  return readPlace(db, await requireEscalation(dependencies, request.escalation_id));
}
