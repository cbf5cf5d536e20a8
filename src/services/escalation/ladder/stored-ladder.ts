/**
 * What the row of an escalation keeps as its ladder: the machine's state, and what belongs to it but not to the
 * machine. Fingerprints stay here; the wire shows the lists without them.
 */
import type { EscalationAdvice, EscalationAttempt, ModelSpec } from '../../../contracts/escalation.ts';
import type { Json } from '../../../contracts/primitives.ts';
import type { ResolvedEscalation } from '../../../core/definition/compile/escalation-settings.ts';
import { labelOf, modelOf } from '../../../core/ladder/labels.ts';
import type { LadderAdvice, LadderAttempt, LadderState } from '../../../core/ladder/types.ts';
import type { EscalatedStep, EscalationRow } from '../../../db/escalation/escalation.ts';

/** An input that a person wants executed, or has let pass. */
export interface DecidedInput {
  readonly review_id: string;
  readonly round: number;
  readonly input: Json;
  /** Whether it becomes a skill when it works. */
  readonly remember: boolean;
}

export interface StoredLadder extends LadderState {
  /** Of a pipeline step. */
  readonly policy: Pick<ResolvedEscalation, 'repair' | 'on_exhausted'> | null;
  /** Executed before anything else. */
  readonly decided: DecidedInput | null;
  /** Skills whose templates level 0 has looked at. */
  readonly seen_skills: readonly string[];
  /** It has gone back for a skill that was made meanwhile. */
  readonly has_followed: boolean;
  /** The step's revision that failed first. */
  readonly revision: number;
  /** What it learns is trusted: an author's pipeline vouches for it, or an admin key. */
  readonly vouches: boolean;
}

export function newStoredLadder(
  state: LadderState,
  part: Partial<Pick<StoredLadder, 'policy' | 'revision' | 'vouches'>> = {},
): StoredLadder {
  return {
    ...state,
    policy: null,
    decided: null,
    seen_skills: [],
    has_followed: false,
    revision: 0,
    vouches: false,
    ...part,
  };
}

export function readLadder({ ladder }: Pick<EscalationRow, 'ladder'>): StoredLadder {
  return ladder as StoredLadder;
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
