/** How one execution at a level ended, in the ladder's terms, and what it says about the skills that took part. */
import type { Failure, Json } from '../../../contracts/primitives.ts';
import type { SkillOutcome } from '../../../contracts/skill.ts';
import type { FailureClass } from '../../../core/ladder/classify-failure.ts';
import { historyTextOf } from '../../../core/ladder/error-text.ts';
import type { LadderEvent } from '../../../core/ladder/types.ts';
import { matchSkill, type SkillJob } from '../../../core/skills/match.ts';
import type { NewSkillUse } from '../../../db/skill/skill-use.ts';
import type { RankedSkill } from '../../skills/match-skills.ts';
import { fingerprintOf } from '../ladder/fingerprint.ts';

export type ExecutionEnd =
  /** `result` of a job that is no step. */
  | { readonly kind: 'succeeded'; readonly result?: Json }
  | { readonly kind: 'no_template' | 'gave_up'; readonly error: Failure }
  | { readonly kind: 'failed'; readonly class: FailureClass; readonly error: Failure }
  | { readonly kind: 'unavailable' }
  /** Not done; the same again after the delay. */
  | { readonly kind: 'interrupted'; readonly delayMs: number };

export interface Execution {
  readonly end: ExecutionEnd;
  readonly level: number;
  /** As the provider named it. */
  readonly model: string | null;
  /** That were shown to the executor, or whose templates were tried. */
  readonly skills: readonly RankedSkill[];
  /** Ids of those that were used; only they can have caused a failure. */
  readonly used: readonly string[];
  /** The skill whose template made it. */
  readonly solved_by: string | null;
  /** The input of a step that was executed last. */
  readonly input?: Json;
}

export function endExecution(
  level: number,
  end: ExecutionEnd,
  part: Partial<Omit<Execution, 'level' | 'end'>> = {},
): Execution {
  return { level, end, model: null, skills: [], used: [], solved_by: null, ...part };
}

/** @param at Unix seconds @returns null when the same is to be done again */
export function toLadderEvent(end: ExecutionEnd, at: number): LadderEvent | null {
  switch (end.kind) {
    case 'succeeded':
      return { type: 'succeeded' };
    case 'unavailable':
      return { type: 'unavailable' };
    case 'interrupted':
      return null;
    case 'no_template':
    case 'gave_up':
      return { type: end.kind, ...failedAt(end.error, at) };
    case 'failed':
      return { type: 'failed', class: end.class, ...failedAt(end.error, at) };
  }
}

function failedAt(failure: Failure, attempted_at: number) {
  const error = historyTextOf(failure);
  return { attempted_at, error, fingerprint: fingerprintOf(error) };
}

/**
 * The uses to record. A skill is credited with a success, and blamed for a real failure if it still matches the new
 * error; a skill that was only shown, and a failure that another error explains, are neutral. Transient ends say nothing.
 */
export function skillUsesOf(
  { end, level, skills, used, solved_by }: Execution,
  job: Omit<SkillJob, 'error'>,
): readonly NewSkillUse[] {
  const isReal = end.kind === 'gave_up' || (end.kind === 'failed' && end.class === 'real');
  if (end.kind !== 'succeeded' && !isReal) return [];
  const outcomeOf = ({ skill }: RankedSkill): SkillOutcome => {
    if (!used.includes(skill.id)) return 'neutral';
    if (end.kind === 'succeeded') return solved_by === null || solved_by === skill.id ? 'success' : 'failure';
    return matchSkill(skill, { ...job, error: historyTextOf(end.error) }) === null ? 'neutral' : 'failure';
  };
  const counted = level === 0 ? skills.filter(({ skill }) => used.includes(skill.id)) : skills;
  return counted.map((ranked) => ({
    skill_id: ranked.skill.id,
    version: ranked.skill.version,
    level,
    outcome: outcomeOf(ranked),
  }));
}

/** Ids of the skills that an attempt ran with. */
export function activeSkillsOf({ level, skills, used }: Execution): readonly string[] {
  return level === 0 ? used : skills.map(({ skill }) => skill.id);
}
