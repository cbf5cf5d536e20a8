/** What one execution at a level says about the skills that took part. */
import type { SkillOutcome } from '../../../contracts/skill.ts';
import { historyTextOf } from '../../../core/ladder/error-text.ts';
import type { LevelExecution } from '../../../core/ladder/execution.ts';
import { matchSkill, type RankedSkill, type SkillJob } from '../../../core/skills/match.ts';
import type { NewSkillUse } from '../../../db/skill/skill-use.ts';

/**
 * The uses to record. A skill is credited with a success, and blamed for a real failure if it still matches the new
 * error; a skill that was only shown, and a failure that another error explains, are neutral. Transient ends say nothing.
 */
export function skillUsesOf(
  { end, level, skills, used, solved_by }: LevelExecution,
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
export function activeSkillsOf({ level, skills, used }: LevelExecution): readonly string[] {
  return level === 0 ? used : skills.map(({ skill }) => skill.id);
}
