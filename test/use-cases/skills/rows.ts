/** Skills in the database, for tests of what is made of them. */
import type { Db } from '../../../src/db/connect.ts';
import { type NewSkill, storeSkill } from '../../../src/db/skill.ts';
import { newId } from '../../../src/parts/ids.ts';
import { type SkillContent, writeSkillText } from '../../../src/use-cases/skills/stored-skill.ts';

type Facts = Pick<
  NewSkill,
  'job_type' | 'trust' | 'source' | 'success_count' | 'failure_count' | 'last_used_at'
>;

/** Active and trusted, for any error of `tts`. @returns its id */
export async function aStoredSkill(
  db: Db,
  project_id: string,
  changes: Partial<SkillContent & Facts> = {},
): Promise<string> {
  const { repo_signals = [], error_patterns = [], template = null, ...facts } = changes;
  const { instructions = `write the rate as a number, ${newId('skill')}`, ...rest } = facts;
  const { skill_id } = await storeSkill(db, {
    ...writeSkillText({ repo_signals, error_patterns, instructions, template }, 'key_1'),
    skill_id: newId('skill'),
    project_id,
    job_type: 'tts',
    trust: 'trusted',
    source: 'human-fix',
    success_count: 1,
    failure_count: 0,
    added_success: 0,
    added_failure: 0,
    escalation_id: null,
    last_used_at: null,
    created_at: null,
    ...rest,
  });
  return skill_id;
}
