/**
 * Learns from what people decide about repairs. A decision is stored as evidence when it has been applied: for the
 * repair whose input worked, against those that were rejected, passed over or failed. Enough evidence for a repair and
 * none against it makes a skill, which level 0 applies. Evidence against it later flags the skill, and asks a person.
 *
 * A skill that was retired stays retired: further decisions about the same repair change nothing.
 */
import type { RepairIdentity } from '@capstan/core/contracts/review';
import { decidedSource } from '@capstan/core/contracts/skill';
import {
  type DecidedProposals,
  isSure,
  weighProposals,
  writeRepairTemplate,
} from '@capstan/core/repair/decided-repairs';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import {
  addRepairDecision,
  listRepairDecisions,
  lockRepairDecisions,
  nameDecidedSkill,
  type RepairKey,
} from '../../db/review/repair-decision.ts';
import type { ReviewRow } from '../../db/review/review.ts';
import { storeSkill } from '../../db/skill.ts';
import { newId } from '../../parts/ids.ts';
import { writeSkillText } from './stored-skill.ts';
import { type AskAboutSkill, doubtSkill } from './use.ts';

interface AppliedDecision {
  /** The review before it is opened again. */
  readonly review: Pick<
    ReviewRow,
    'review_id' | 'project_id' | 'round' | 'payload' | 'decided_by' | 'run_id'
  >;
  readonly capability: string;
  readonly decided: DecidedProposals;
}

/** @param trx in which the decision is applied; a repetition changes nothing */
export async function learnFromDecision(
  trx: Db,
  { review, capability, decided }: AppliedDecision,
  ask: AskAboutSkill,
): Promise<void> {
  const { review_id, project_id, round, payload, decided_by, run_id } = review;
  const weighed = weighProposals(payload.proposals ?? [], decided);
  if (weighed.length === 0 || run_id === null || decided_by === null) return;
  await lockRepairDecisions(trx, { project_id, capability });
  for (const { proposal, repair, outcome } of weighed) {
    const key = { ...repair, project_id, capability };
    const decision_id = `${review_id}.${round}.${proposal}`;
    await addRepairDecision(trx, { ...key, decision_id, outcome, run_id, decided_by });
    await applyRule(trx, { key, outcome }, ask);
  }
}

interface NewEvidence {
  readonly key: RepairKey;
  readonly outcome: 'for' | 'against';
}

async function applyRule(trx: Db, { key, outcome }: NewEvidence, ask: AskAboutSkill): Promise<void> {
  const evidence = await listRepairDecisions(trx, key);
  const known = evidence.find(({ skill_id }) => skill_id !== null)?.skill_id ?? null;
  if (outcome === 'against') {
    if (known === null) return;
    const reason = `a person decided against a repair that is a skill for ${key.capability}`;
    return doubtSkill(trx, { project_id: key.project_id, skill_id: known, reason }, ask);
  }
  const skill_id = known ?? (isSure(evidence) ? await storeDecidedSkill(trx, key, evidence.length) : null);
  if (skill_id !== null) await nameDecidedSkill(trx, key, skill_id);
}

function describe({ operation, place }: RepairIdentity): string {
  return `Repairs ${place} by ${operation}, as people have decided in reviews.`;
}

/** @returns the skill, or the equal one that exists, which may be retired */
async function storeDecidedSkill(trx: Db, key: RepairKey, decisions: number): Promise<string> {
  const { project_id, capability } = key;
  const [source, trust] = [decidedSource, 'trusted'] as const;
  const template = writeRepairTemplate(key);
  const content = { repo_signals: [], error_patterns: [], instructions: describe(key), template };
  const { skill_id, is_new } = await storeSkill(trx, {
    ...writeSkillText(content, source),
    skill_id: newId('skill'),
    project_id,
    job_type: capability,
    trust,
    source,
    escalation_id: null,
    success_count: decisions,
    failure_count: 0,
    added_failure: 0,
    added_success: 0,
    last_used_at: null,
    created_at: null,
  });
  if (is_new) {
    const entry = { project_id, actor: source, action: 'skill.created', subject: skill_id };
    await insertAudit(trx, { ...entry, data: { source, trust, decisions } });
  }
  return skill_id;
}
