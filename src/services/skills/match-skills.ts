/**
 * Finds the skills for a job, best first. Patterns run in linear time, are compiled once per version of a skill, and
 * are tried in order of rank until enough have matched, so that thousands of skills of strangers cannot hold up a job;
 * other work gets its turn in between.
 */
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Skill } from '../../contracts/skill.ts';
import { confidenceRules, mayApplyAtLevel0, rankSkills } from '../../core/skills/confidence.ts';
import { matchSkill, type RankedSkill, type SkillJob } from '../../core/skills/match.ts';
import { type PatternReading, readPatterns } from '../../core/skills/pattern.ts';
import type { Db } from '../../db/connect.ts';
import { listSkills } from '../../db/skill/skill.ts';
import { toSkill } from './skill-view.ts';

/** The best ones; the others are not tried. */
const mostTried = 500;
/** Then others have their turn. */
const turnMs = 20;
const compiledVersions = 2_000;

export interface SkillQuery extends SkillJob {
  readonly project_id: string;
  /**
   * Only skills whose template may be applied without a model, and all of them: which ones fit the input, only they
   * say themselves, and many may be for the same error.
   */
  readonly with_template?: boolean;
}

export interface SkillMatcher {
  /** At most three, but for templates, best first. */
  match(query: SkillQuery): Promise<readonly RankedSkill[]>;
}

export function createSkillMatcher({ db }: { readonly db: Db }): SkillMatcher {
  const compiled = new LRUCache<string, PatternReading>({ max: compiledVersions });

  const readOnce = (skill: Skill, texts: readonly string[]): PatternReading => {
    const key = `${skill.id}.${skill.version}`;
    const reading = compiled.get(key) ?? readPatterns(texts);
    compiled.set(key, reading);
    return reading;
  };

  return {
    match: async ({ project_id, with_template = false, ...job }) => {
      const { job_type, signals } = job;
      const rows = await listSkills(db, { project_id, job_type, signals, state: 'active' });
      const skills = rows.map(toSkill).filter((skill) => !with_template || mayApplyAtLevel0(skill));
      const most = with_template ? mostTried : confidenceRules.injected;
      const found: RankedSkill[] = [];
      let turnEnd = performance.now() + turnMs;
      for (const skill of rankSkills(skills).slice(0, mostTried)) {
        if (performance.now() > turnEnd) {
          await setImmediate();
          turnEnd = performance.now() + turnMs;
        }
        const match = matchSkill(skill, job, (texts) => readOnce(skill, texts));
        if (match !== null && found.push(match) === most) break;
      }
      return found;
    },
  };
}
