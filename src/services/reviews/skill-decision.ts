/** Does what a person decided about a skill. */
import type { SkillPatch } from '../../contracts/skill.ts';
import type { Db } from '../../db/connect.ts';
import type { ReviewRow } from '../../db/review/review.ts';
import type { SkillRow } from '../../db/skill/skill.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import {
  keepSkillAsItIs,
  requireSkill,
  retireSkillForGood,
  reviseSkillText,
  type SkillChange,
} from '../skills/change-skill.ts';
import { checkSkill } from '../skills/check-skill.ts';
import { trustOfPatch } from '../skills/skill-trust.ts';

/**
 * @param trx in which the decision is stored: what is refused here was not decided
 * @throws AppError `request_invalid` when the decision does not fit, `not_found`, `state_conflict`, `forbidden`
 */
export async function applySkillDecision(
  trx: Db,
  { skill_id, project_id, decision }: Pick<ReviewRow, 'skill_id' | 'project_id' | 'decision'>,
  caller: Caller,
): Promise<void> {
  if (skill_id === null || decision === null) throw new AppError('internal', 'no skill was decided about');
  const change: SkillChange = { project_id, skill_id, actor: caller.key_id };
  switch (decision.action) {
    case 'keep':
      return keepSkillAsItIs(trx, change);
    case 'edit':
      return revise(trx, change, { patch: decision.skill, caller });
    case 'narrow':
      requireNarrower(await requireSkill(trx, project_id, skill_id), decision.skill);
      return revise(trx, change, { patch: decision.skill, caller });
    case 'merge':
      return merge(trx, change, decision.into);
    case 'retire':
      return retireSkillForGood(trx, change);
    default:
      throw refuse('/action', `${decision.action} is no decision about a skill`);
  }
}

function refuse(pointer: string, message: string): AppError {
  return new AppError('request_invalid', message, { errors: [{ pointer, code: 'invalid_value', message }] });
}

async function revise(
  trx: Db,
  change: SkillChange,
  { patch, caller }: { readonly patch: SkillPatch | undefined; readonly caller: Caller },
): Promise<void> {
  if (patch === undefined) throw refuse('/skill', 'the decision does not say what to change');
  checkSkill(patch, '/skill');
  const trust = trustOfPatch(caller, patch, { isDecision: true });
  await reviseSkillText(trx, change, { patch, trust });
}

/** It has to ask for more than before: another signal, or patterns where any error would do. */
function requireNarrower(skill: SkillRow, patch: SkillPatch | undefined): void {
  const { repo_signals = skill.repo_signals, error_patterns = skill.error_patterns } = patch?.pattern ?? {};
  if (!skill.repo_signals.every((signal) => repo_signals.includes(signal))) {
    throw refuse('/skill/pattern/repo_signals', 'a narrower skill keeps all signals that it needed');
  }
  if (error_patterns.length === 0 && skill.error_patterns.length > 0) {
    throw refuse('/skill/pattern/error_patterns', 'without patterns it would be for any error');
  }
  const hasMoreSignals = repo_signals.length > skill.repo_signals.length;
  if (hasMoreSignals || String(error_patterns) !== String(skill.error_patterns)) return;
  throw refuse('/skill/pattern', 'a narrower skill needs one more signal, or other error patterns');
}

async function merge(trx: Db, change: SkillChange, into: string | undefined): Promise<void> {
  const skill = await requireSkill(trx, change.project_id, change.skill_id);
  const other = into === undefined || into === change.skill_id ? undefined : into;
  if (other === undefined) throw refuse('/into', 'name another skill, which stays');
  const { state, job_type } = await requireSkill(trx, change.project_id, other);
  if (state === 'retired' || job_type !== skill.job_type) {
    throw refuse('/into', `${other} is not an active skill for ${skill.job_type}`);
  }
  await retireSkillForGood(trx, change, other);
}
