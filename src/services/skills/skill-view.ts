import type { Skill } from '../../contracts/skill.ts';
import { confidenceOf } from '../../core/skills/confidence.ts';
import type { SkillRow } from '../../db/skill/skill.ts';

function unixSeconds(at: Date): number {
  return at.getTime() / 1_000;
}

/** The specification's fields, and what we know besides. */
export function toSkill(row: SkillRow): Skill {
  return {
    id: row.skill_id,
    pattern: {
      job_type: row.job_type,
      repo_signals: [...row.repo_signals],
      ...(row.error_patterns.length === 0 ? {} : { error_patterns: [...row.error_patterns] }),
    },
    instructions: row.instructions,
    ...(row.template === null ? {} : { template: row.template }),
    source: row.source,
    success_count: row.success_count,
    failure_count: row.failure_count,
    confidence: confidenceOf(row),
    last_used: unixSeconds(row.last_used_at),
    created_at: unixSeconds(row.created_at),
    state: row.state,
    flagged: row.flagged_at !== null,
    trust: row.trust,
    version: row.version,
    uses: row.uses,
  };
}
