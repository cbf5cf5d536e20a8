/** What became of skills that were used. One that does more harm than good is flagged, and a person is asked about it. */
import type { ReviewPayload } from '../../contracts/review.ts';
import { confidenceOf, formatConfidence, shouldFlag } from '../../core/skills/confidence.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { findSkill, flagSkill, type SkillRow } from '../../db/skill/skill.ts';
import {
  addSkillUses,
  type CountedSkillRow,
  type NewSkillUse,
  type SkillOccasion,
} from '../../db/skill/skill-use.ts';

/** Nobody waits for it, and until then the skill is a hint only. */
const reviewDueMs = 30 * 86_400_000;

export interface SkillUses {
  readonly project_id: string;
  /** Null: a call of `/execute`, which counts whenever it is told. */
  readonly occasion: SkillOccasion | null;
  readonly uses: readonly NewSkillUse[];
}

/** What a person is asked about a skill. */
export interface SkillQuestion {
  readonly project_id: string;
  readonly kind: 'skill';
  readonly skill_id: string;
  /** One sentence for a person. */
  readonly reason: string;
  readonly payload: ReviewPayload;
  readonly due_in_ms: number;
}

/** A skill has one open review: who asks again gets that one. */
export type AskAboutSkill = (trx: Db, question: SkillQuestion) => Promise<{ readonly review_id: string }>;

/** @param trx in which the outcome is stored; told again, nothing is counted again */
export async function recordSkillUses(
  trx: Db,
  { project_id, occasion, uses }: SkillUses,
  ask: AskAboutSkill,
): Promise<void> {
  const counted = await addSkillUses(trx, project_id, occasion, uses);
  for (const row of counted) {
    if (!shouldFlag({ ...row, uses: row.uses_since_keep })) continue;
    const isNew = await flagSkill(trx, row.skill_id);
    if (isNew || row.flagged_at !== null) await askAbout(trx, { project_id, counted: row, isNew }, ask);
  }
}

interface Flagged {
  readonly project_id: string;
  readonly counted: CountedSkillRow;
  /** It was not flagged before. */
  readonly isNew: boolean;
}

async function askAbout(trx: Db, { project_id, counted, isNew }: Flagged, ask: AskAboutSkill): Promise<void> {
  const { skill_id } = counted;
  const skill = await findSkill(trx, project_id, skill_id);
  if (skill === undefined) return;
  const confidence = confidenceOf(counted);
  const reason = `a skill for ${skill.job_type} works in ${formatConfidence(confidence)} of its uses`;
  const payload = payloadOf(skill, confidence);
  const { review_id } = await ask(trx, {
    project_id,
    kind: 'skill',
    reason,
    skill_id,
    payload,
    due_in_ms: reviewDueMs,
  });
  const data = { review_id, confidence, uses: counted.uses };
  const entry = { project_id, actor: 'capstan', action: 'skill.flagged', subject: skill_id, data };
  if (isNew) await insertAudit(trx, entry);
}

function payloadOf(skill: SkillRow, confidence: number): ReviewPayload {
  return {
    job_type: skill.job_type,
    details: {
      skill_id: skill.skill_id,
      version: skill.version,
      repo_signals: skill.repo_signals,
      error_patterns: skill.error_patterns,
      instructions: skill.instructions,
      ...(skill.template === null ? {} : { template: skill.template }),
      source: skill.source,
      success_count: skill.success_count,
      failure_count: skill.failure_count,
      confidence,
    },
  };
}
