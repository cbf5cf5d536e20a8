/** Changes of a skill, each in the caller's transaction and each audited. Versions stay; a retired skill keeps its id. */

import type { JsonObject } from '../../contracts/primitives.ts';
import type { SkillPatch, SkillTrust } from '../../contracts/skill.ts';
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { findSkill, keepSkill, retireSkill, reviseSkill, type SkillRow } from '../../db/skill/skill.ts';
import { hasSqlState } from '../../db/sql-state.ts';
import { AppError } from '../../errors/app-error.ts';
import { writeSkillText } from './skill-content.ts';

export interface SkillChange {
  readonly project_id: string;
  readonly skill_id: string;
  /** Id of the key that changes it. */
  readonly actor: string;
}

/** @throws AppError `not_found`, also when it is another project's */
export async function requireSkill(db: Db, projectId: string, skillId: string): Promise<SkillRow> {
  const row = await findSkill(db, projectId, skillId);
  if (row === undefined) throw new AppError('not_found', `no skill ${skillId}`);
  return row;
}

async function requireActive(trx: Db, { project_id, skill_id }: SkillChange): Promise<SkillRow> {
  const row = await requireSkill(trx, project_id, skill_id);
  if (row.state === 'active') return row;
  throw new AppError('state_conflict', `${skill_id} is retired; only active skills change`);
}

function note(
  trx: Db,
  { project_id, skill_id, actor }: SkillChange,
  entry: { readonly action: string; readonly data: JsonObject },
): Promise<void> {
  return insertAudit(trx, { project_id, actor, subject: skill_id, ...entry });
}

/** The unique index on what skills say. */
function saysTheSame(thrown: unknown): boolean {
  return hasSqlState(thrown, 'unique_violation');
}

/**
 * A new version; what the patch leaves out stays.
 * @param trust null: as it was
 * @throws AppError `not_found`; `state_conflict` when it is retired, changed meanwhile, or another says the same
 */
export async function reviseSkillText(
  trx: Db,
  change: SkillChange,
  { patch, trust }: { readonly patch: SkillPatch; readonly trust: SkillTrust | null },
): Promise<void> {
  const { project_id, skill_id, actor } = change;
  const row = await requireActive(trx, change);
  const { pattern = {}, instructions = row.instructions, template = row.template } = patch;
  const { repo_signals = row.repo_signals, error_patterns = row.error_patterns } = pattern;
  const text = writeSkillText({ repo_signals, error_patterns, instructions, template }, actor);
  const revision = { ...text, project_id, skill_id, version: row.version, trust };
  const isRevised = await reviseSkill(trx, revision).catch((thrown: unknown) => {
    if (!saysTheSame(thrown)) throw thrown;
    throw new AppError('state_conflict', `another skill for ${row.job_type} says exactly this`);
  });
  if (!isRevised) throw new AppError('state_conflict', `${skill_id} was changed meanwhile; read it again`);
  await note(trx, change, {
    action: 'skill.revised',
    data: { version: row.version + 1, trust: trust ?? row.trust },
  });
}

/** No longer flagged until it fails again. @throws AppError `not_found`, `state_conflict` when it is retired */
export async function keepSkillAsItIs(trx: Db, change: SkillChange): Promise<void> {
  await requireActive(trx, change);
  await keepSkill(trx, change.project_id, change.skill_id);
  await note(trx, change, { action: 'skill.kept', data: {} });
}

/** Repeated, it changes nothing. @param into the skill that says it better @throws AppError `not_found` */
export async function retireSkillForGood(trx: Db, change: SkillChange, into?: string): Promise<void> {
  const row = await requireSkill(trx, change.project_id, change.skill_id);
  if (row.state === 'retired') return;
  await retireSkill(trx, change.project_id, change.skill_id);
  await note(trx, change, { action: 'skill.retired', data: into === undefined ? {} : { into } });
}
