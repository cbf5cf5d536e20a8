/**
 * A ladder between two transitions: the machine's state, and what belongs to the ladder but not to the machine. Plain
 * JSON. Fingerprints are stored in it; the wire shows the lists without them.
 *
 * Also converts the lists of a ladder: those that a job brings from earlier attempts, and those on the wire.
 */

import type { EscalationAdvice, EscalationAttempt } from '../contracts/escalation.ts';
import type { Failure, Json } from '../contracts/primitives.ts';
import type { ResolvedEscalation } from '../definition/step-settings.ts';
import { historyTextOf, keepError } from './error-text.ts';
import { humanLevel, labelOf } from './levels.ts';
import { applyLadder, createAttempt, startLadder } from './machine.ts';
import type { LadderAdvice, LadderAttempt, LadderEvent, LadderStart, LadderState } from './types.ts';

/** An input that a person decided to execute, or approved. */
export interface DecidedInput {
  readonly review_id: string;
  readonly round: number;
  readonly input: Json;
  /** Whether the input becomes a skill if it succeeds. */
  readonly remember: boolean;
}

export interface Ladder extends LadderState {
  /** The pipeline's rules for the step; null for a job outside a step. */
  readonly policy: Pick<ResolvedEscalation, 'repair' | 'on_exhausted'> | null;
  /** Executed before anything else; null = no decision yet. */
  readonly decided: DecidedInput | null;
  /** Skills whose templates level 0 has considered. */
  readonly seen_skills: readonly string[];
  /** It has restarted once for a skill that was learnt meanwhile. */
  readonly has_followed: boolean;
  /** The revision of the step's first failure. */
  readonly revision: number;
  /** What it learns is trusted, because of the author's pipeline or an admin key. */
  readonly vouches: boolean;
}

export function newLadder(
  state: LadderState,
  part: Partial<Pick<Ladder, 'policy' | 'revision' | 'vouches'>> = {},
): Ladder {
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

/** The clock and the fingerprint function for history entries. */
export interface ErrorContext {
  /** Unix seconds. */
  readonly now: number;
  /** The canonical text of an error (`maskError`), or its digest; equal for equal failures. */
  readonly fingerprintOf: (error: string) => string;
}

/** A failure in the form of the history and the machine's events. */
export function failedAt(
  failure: Failure,
  { now, fingerprintOf }: ErrorContext,
): Pick<LadderAttempt, 'attempted_at' | 'error' | 'fingerprint'> {
  const error = historyTextOf(failure);
  return { attempted_at: now, error, fingerprint: fingerprintOf(error) };
}

interface StepFailure {
  readonly policy: ResolvedEscalation;
  readonly failure: Failure;
  /** The revision of the failed input. */
  readonly revision: number;
}

/**
 * The ladder of a step whose own call, the attempt at level 0, failed. A step that needs a person starts at its end
 * (L8).
 */
export function openStepLadder({ policy, failure, revision }: StepFailure, context: ErrorContext): Ladder {
  const state = startLadder({
    start_level: policy.needs_person ? humanLevel : 0,
    lowest_level: policy.start_level,
    max_level: policy.max_level,
    history: [createAttempt({ level: 0, ...failedAt(failure, context) })],
    advice: [],
  });
  return newLadder(state, { policy, revision, vouches: true });
}

export function applyEvent(ladder: Ladder, event: LadderEvent): Ladder {
  return { ...ladder, ...applyLadder(ladder, event) };
}

/** Restarts the ladder at a level, with all earlier attempts and advice. */
export function restartLadder(ladder: Ladder, level: number): Ladder {
  const { rules, history, advice } = ladder;
  return { ...ladder, ...startLadder({ ...rules, history, advice, start_level: level }) };
}

/** Adds a person's advice, and continues at the level that is to follow it. */
export function adviseByPerson(ladder: Ladder, instructions: string, level: number): Ladder {
  const given: LadderAdvice = {
    from_level: humanLevel,
    label: labelOf(humanLevel),
    instructions,
    suggested_executor_level: level,
    fingerprint: ladder.history.at(-1)?.fingerprint ?? '',
  };
  return restartLadder({ ...ladder, advice: [...ladder.advice, given] }, level);
}

interface Lists {
  readonly escalation_history: readonly EscalationAttempt[];
  readonly escalation_advice: readonly EscalationAdvice[];
}

/** The loop adds one advice after each failure, so each answers the attempt at its own index. */
export function carryLists(
  { escalation_history, escalation_advice }: Lists,
  fingerprintOf: (error: string) => string,
): Pick<LadderStart, 'history' | 'advice'> {
  const history: LadderAttempt[] = escalation_history.map(({ level, label, attempted_at, error }) => {
    const kept = keepError(error);
    return { level, label, attempted_at, error: kept, fingerprint: fingerprintOf(kept) };
  });
  const advice = escalation_advice.map(
    ({ reasoning, suggested_executor_level, ...given }, at): LadderAdvice => ({
      ...given,
      ...(reasoning === undefined ? {} : { reasoning }),
      ...(suggested_executor_level === undefined ? {} : { suggested_executor_level }),
      fingerprint: (history[at] ?? history.at(-1))?.fingerprint ?? '',
    }),
  );
  return { history, advice };
}

export function toWireAttempt({ level, label, attempted_at, error }: LadderAttempt): EscalationAttempt {
  return { level, label, attempted_at, error };
}

export function toWireAdvice({ fingerprint: _, ...advice }: LadderAdvice): EscalationAdvice {
  return advice;
}
