/** The ladder that the row of an escalation keeps, and what the wire shows of it: the lists without fingerprints. */
import type { EscalationAdvice, EscalationAttempt, ModelSpec } from '../../../contracts/escalation.ts';
import { labelOf, modelOf } from '../../../core/ladder/labels.ts';
import type { Ladder } from '../../../core/ladder/ladder.ts';
import type { LadderAdvice, LadderAttempt } from '../../../core/ladder/types.ts';
import type { EscalatedStep, EscalationRow } from '../../../db/escalation/escalation.ts';

export function readLadder({ ladder }: Pick<EscalationRow, 'ladder'>): Ladder {
  return ladder as Ladder;
}

/** The step that a ladder is of; null when it is by itself. */
export function stepOf({ run_id, step_id, item }: EscalationRow): EscalatedStep | null {
  return run_id === null || step_id === null ? null : { run_id, step_id, item: item ?? 0 };
}

export function toWireAttempt({ level, label, attempted_at, error }: LadderAttempt): EscalationAttempt {
  return {
    level,
    label,
    attempted_at,
    error,
  };
}

export function toWireAdvice({ fingerprint: _, ...advice }: LadderAdvice): EscalationAdvice {
  return advice;
}

export function modelSpecOf(level: number, model: string | null = null): ModelSpec {
  return {
    level,
    label: labelOf(level),
    capability: modelOf(level),
    model,
  };
}
