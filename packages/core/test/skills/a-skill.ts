import type { KnownSkill } from '../../src/skills/confidence.ts';

export function aSkill(skill: Partial<KnownSkill> = {}): KnownSkill {
  return {
    id: 'skill_1',
    pattern: { job_type: 'tts', repo_signals: [] },
    instructions: 'Send the rate as a number',
    source: 'human-fix',
    success_count: 1,
    failure_count: 0,
    confidence: 1,
    last_used: 0,
    created_at: 0,
    state: 'active',
    flagged: false,
    trust: 'trusted',
    uses: 1,
    version: 1,
    ...skill,
  };
}
