import type { ReviewPayload } from '@capstan/core/contracts/review';
import { decidedSource } from '@capstan/core/contracts/skill';
import { confidenceOf, formatConfidence, shouldFlag } from '@capstan/core/skills/confidence';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { findSkill, flagSkill, type SkillRow } from '../../db/skill.ts';
import { addSkillUses, type SkillUses } from '../../db/skill-use.ts';

/** No workflow waits for the review; until it is decided, the skill is a hint only. */
const reviewDueMs = 30 * 86_400_000;

/** A review of a skill. */
interface SkillQuestion {
  readonly project_id: string;
  readonly kind: 'skill';
  readonly skill_id: string;
  /** One sentence for a person. */
  readonly reason: string;
  readonly payload: ReviewPayload;
  readonly due_in_ms: number;
}

/** A skill has one open review; a second request gets the same one. */
export type AskAboutSkill = (trx: Db, question: SkillQuestion) => Promise<{ readonly review_id: string }>;

/**
 * A decided repair that fails once is flagged: it follows decisions without any against it.
 *
 * @param trx in which the outcome is stored; a repetition counts nothing again
 */
export async function recordSkillUses(trx: Db, uses: SkillUses, ask: AskAboutSkill): Promise<void> {
  const { project_id } = uses;
  const counted = await addSkillUses(trx, uses);
  const failed = uses.uses.filter(({ outcome }) => outcome === 'failure').map(({ skill_id }) => skill_id);
  for (const { skill_id, source, ...row } of counted) {
    const isDoubtful = source === decidedSource && failed.includes(skill_id);
    if (isDoubtful || shouldFlag({ ...row, uses: row.uses_since_keep })) {
      await doubtSkill(trx, { project_id, skill_id, reason: null }, ask);
    }
  }
}

interface DoubtfulSkill {
  readonly project_id: string;
  readonly skill_id: string;
  /** One sentence for a person; null: its uses show it. */
  readonly reason: string | null;
}

/** Flags an active skill and asks a person about it. A flagged skill has, or gets, one open review. */
export async function doubtSkill(
  trx: Db,
  { project_id, skill_id, reason: given }: DoubtfulSkill,
  ask: AskAboutSkill,
): Promise<void> {
  const isNew = await flagSkill(trx, skill_id);
  const skill = await findSkill(trx, project_id, skill_id);
  if (skill === undefined || skill.flagged_at === null) return;
  const confidence = confidenceOf(skill);
  const reason =
    given ?? `a skill for ${skill.job_type} works in ${formatConfidence(confidence)} of its uses`;
  const payload = payloadOf(skill, confidence);
  const { review_id } = await ask(trx, {
    project_id,
    kind: 'skill',
    reason,
    skill_id,
    payload,
    due_in_ms: reviewDueMs,
  });
  const data = { review_id, confidence, uses: skill.uses };
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
