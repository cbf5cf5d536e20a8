/**
 * The ladder that the row of an escalation keeps. Its lists stand in columns of their own and nowhere else: the database
 * lets those grow only.
 */
import type { ModelSpec } from '../../../contracts/escalation.ts';
import { labelOf, modelOf } from '../../../core/ladder/labels.ts';
import type { Ladder } from '../../../core/ladder/ladder.ts';
import type { EscalatedStep, EscalationRow, NewEscalation } from '../../../db/escalation/escalation.ts';

type StoredColumns = Pick<NewEscalation, 'ladder' | 'escalation_history' | 'escalation_advice'>;

export function readLadder({ ladder, escalation_history, escalation_advice }: StoredColumns): Ladder {
  return {
    ...(ladder as Omit<Ladder, 'history' | 'advice'>),
    history: escalation_history,
    advice: escalation_advice,
  };
}

/** The columns that keep a ladder. */
export function storeLadder({ history, advice, ...ladder }: Ladder): StoredColumns {
  return { ladder, escalation_history: history, escalation_advice: advice };
}

/** The step that a ladder is of; null when it is by itself. */
export function stepOf({ run_id, step_id, item }: EscalationRow): EscalatedStep | null {
  return run_id === null || step_id === null ? null : { run_id, step_id, item: item ?? 0 };
}

export function modelSpecOf(level: number, model: string | null = null): ModelSpec {
  return {
    level,
    label: labelOf(level),
    capability: modelOf(level),
    model,
  };
}
