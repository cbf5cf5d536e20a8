/** The lists of a ladder: as a job brings them along from attempts made before, and as the wire shows them, without fingerprints. */
import type { EscalationAdvice, EscalationAttempt } from '../../contracts/escalation.ts';
import { keepError } from './error-text.ts';
import type { LadderAdvice, LadderAttempt, LadderStart } from './types.ts';

interface Lists {
  readonly escalation_history: readonly EscalationAttempt[];
  readonly escalation_advice: readonly EscalationAdvice[];
}

/** The loop adds one advice after each failure, so that each answers the attempt at its own place. */
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
