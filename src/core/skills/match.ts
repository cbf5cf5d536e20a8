/** Whether a skill is for a job: its type, its signals and, where the skill names some, its last error. */
import { type ErrorGroups, matchPatterns, readPatterns } from './pattern.ts';
import type { Skill } from './types.ts';

export interface SkillJob {
  readonly job_type: string;
  readonly signals: readonly string[];
  /** The last error; null before the first. */
  readonly error: string | null;
}

export interface SkillMatch {
  readonly skill: Skill;
  /** Named groups of the pattern that matched. */
  readonly groups: ErrorGroups;
}

export const matchSkill = (skill: Skill, job: SkillJob): SkillMatch | null => {
  const { job_type, repo_signals, error_patterns = [] } = skill.pattern;
  if (skill.state !== 'active' || job_type !== job.job_type) return null;
  if (!repo_signals.every((signal) => job.signals.includes(signal))) return null;
  if (error_patterns.length === 0) return { skill, groups: {} };
  const reading = readPatterns(error_patterns);
  const groups = reading.ok && job.error !== null ? matchPatterns(reading.patterns, job.error) : null;
  return groups === null ? null : { skill, groups };
};
