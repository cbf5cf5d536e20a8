/**
 * The skill that a success is stored as. A step's leads from the author's own mistake to the input that worked in
 * the end, so that the next run with that mistake needs nobody, however many attempts lay between. For a job by itself
 * whose caller may not vouch for its error it is a candidate.
 */
import type { Json } from '../../../contracts/primitives.ts';
import { humanLevel } from '../../../core/ladder/labels.ts';
import type { Lesson } from '../../../core/ladder/types.ts';
import type { Db } from '../../../db/connect.ts';
import type { EscalationRow } from '../../../db/escalation/escalation.ts';
import { type Learning, learnSkill } from '../../skills/learn-skill.ts';
import type { PresentSpec } from '../levels/present-spec.ts';
import { readLadder, stepOf } from './stored-ladder.ts';

export interface Success {
  readonly row: EscalationRow;
  /** The advice that led to it; null when a person gave the input. */
  readonly lesson: Lesson | null;
  readonly signals: readonly string[];
  /** The input of a step that worked; undefined for a job by itself. */
  readonly input: Json | undefined;
  readonly spec: PresentSpec | null;
}

/** @returns the skill's id; null when nothing general can be said */
export function learnFromSuccess(
  trx: Db,
  { row, lesson, signals, input, spec }: Success,
): Promise<string | null> {
  const { history, vouches } = readLadder(row);
  const attempt = stepOf(row) === null ? lesson?.attempt : history[0];
  if (attempt === undefined) return Promise.resolve(null);
  const { project_id, job_type, escalation_id } = row;
  const correction: Learning['correction'] =
    stepOf(row) === null || input === undefined || spec === null
      ? null
      : { original: row.context, corrected: input, isValid: (one) => spec.find(one).length === 0 };
  return learnSkill(trx, {
    project_id,
    job_type,
    escalation_id,
    signals,
    correction,
    trust: vouches ? 'trusted' : 'candidate',
    error: attempt.error,
    fingerprint: attempt.fingerprint,
    from_level: lesson?.advice.from_level ?? humanLevel,
    instructions: lesson?.advice.instructions ?? null,
  });
}
