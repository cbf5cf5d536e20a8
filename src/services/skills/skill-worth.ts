import type { SkillWorth } from '../../contracts/skill.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import type { Db } from '../../db/connect.ts';
import { readSkillWorth, type SkillWorthRow } from '../../db/skill/skill-worth.ts';
import { AppError } from '../../errors/app-error.ts';

function learntOf({
  escalation_id,
  run_id,
  step_id,
  cost_nano,
  ...row
}: SkillWorthRow): SkillWorth['learnt'] {
  if (escalation_id === null) return null;
  return {
    escalation_id,
    ...(run_id === null ? {} : { run_id }),
    ...(step_id === null ? {} : { step_id }),
    error: row.error ?? '',
    input: row.input,
    corrected: row.corrected,
    cost_usd: fromNanoUsd(BigInt(cost_nano)),
    duration_ms: Math.round(row.duration_ms ?? 0),
  };
}

/** @throws AppError `not_found` */
export async function showSkillWorth(db: Db, projectId: string, skillId: string): Promise<SkillWorth> {
  const row = await readSkillWorth(db, projectId, skillId);
  if (row === undefined) throw new AppError('not_found', `there is no skill ${skillId}`);
  const learnt = learntOf(row);
  const { uses } = row;
  return {
    uses,
    saved_usd: fromNanoUsd(BigInt(uses) * BigInt(row.cost_nano)),
    saved_ms: uses * (learnt?.duration_ms ?? 0),
    reviews_avoided: row.was_reviewed ? uses : 0,
    learnt,
  };
}
