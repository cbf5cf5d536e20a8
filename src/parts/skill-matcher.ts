/**
 * The skills for a job are searched best first: patterns run in linear time, are compiled once per version of a skill,
 * and are tried in order of rank until enough have matched. So thousands of untrusted skills cannot delay a job, and
 * the search yields to other work.
 */

import { setImmediate } from 'node:timers/promises';
import { decidedSource, Skill } from '@capstan/core/contracts/skill';
import { toWire } from '@capstan/core/contracts/to-wire';
import { confidenceOf, confidenceRules, mayApplyAtLevel0, rankSkills } from '@capstan/core/skills/confidence';
import { matchSkill, type RankedSkill, type SkillJob } from '@capstan/core/skills/match';
import { type PatternReading, readPatterns } from '@capstan/core/skills/pattern';
import { LRUCache } from 'lru-cache';
import type { Db } from '../db/connect.ts';
import { listSkills, type SkillRow } from '../db/skill.ts';

function unixSeconds(at: Date): number {
  return at.getTime() / 1_000;
}

/** The specification's fields, and Capstan's own. */
export function toSkill(row: SkillRow): Skill {
  const { job_type, repo_signals, error_patterns } = row;
  return toWire(Skill, {
    ...row,
    id: row.skill_id,
    pattern: {
      job_type,
      repo_signals: [...repo_signals],
      ...(error_patterns.length === 0 ? {} : { error_patterns: [...error_patterns] }),
    },
    confidence: confidenceOf(row),
    last_used: unixSeconds(row.last_used_at),
    created_at: unixSeconds(row.created_at),
    flagged: row.flagged_at !== null,
  });
}

/** Only the best ones are tried. */
const mostTried = 500;

/** After this time, the search yields. */
const turnMs = 20;

const compiledVersions = 2_000;

export interface SkillQuery extends SkillJob {
  readonly project_id: string;
  /**
   * All skills whose template may be applied without a model, and no others: only the template itself shows whether it
   * fits the input, and many may be for the same error.
   */
  readonly with_template?: boolean;
}

/**
 * Finds skills, and caches their compiled patterns. A decided repair is only a template, which has no text for models.
 */
export interface SkillMatcher {
  /** Best first; at most three, except templates. */
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
      const skills = rows
        .map(toSkill)
        .filter((skill) => (with_template ? mayApplyAtLevel0(skill) : skill.source !== decidedSource));
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
