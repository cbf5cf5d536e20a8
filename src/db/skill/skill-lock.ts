/**
 * The order of locks: a skill comes before its reviews. Whoever changes a skill, or counts uses of it, does so before
 * the reviews of it; a decision about it has to lock it first, or the two would wait for each other.
 */
import type { Db } from '../connect.ts';

/** Held until the end of the transaction. */
export async function lockSkill(trx: Db, projectId: string, skillId: string): Promise<void> {
  await trx.raw('select 1 from skill where project_id = ? and skill_id = ? for no key update', [
    projectId,
    skillId,
  ]);
}
