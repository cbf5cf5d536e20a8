/**
 * Decisions about repairs: one row for each proposal of a review that a decision is evidence about. The rows of equal
 * repairs are read together, under a lock, so that of two decisions at once the later one sees the earlier.
 */

import type { RepairIdentity } from '@capstan/core/contracts/review';
import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';

/** A repair of a project's capability. */
export interface RepairKey extends RepairIdentity {
  readonly project_id: string;
  readonly capability: string;
}

interface DecidedRepair {
  readonly outcome: 'for' | 'against';
  readonly run_id: string;
}

export interface NewRepairDecision extends RepairKey, DecidedRepair {
  /** `<review>.<round>.<proposal>` */
  readonly decision_id: string;
  readonly decided_by: string;
}

/** Lets other decisions about repairs of the capability wait until the transaction ends. */
export async function lockRepairDecisions(
  trx: Db,
  { project_id, capability }: Pick<RepairKey, 'project_id' | 'capability'>,
): Promise<void> {
  await takeLock(trx, 'repairs', project_id, capability);
}

function toDigest(hex: string): Buffer {
  return Buffer.from(hex, 'hex');
}

/** A decision that is stored already does not change. */
export async function addRepairDecision(trx: Db, decision: NewRepairDecision): Promise<void> {
  const row = { ...decision, schema_sha256: toDigest(decision.schema_sha256) };
  await trx('repair_decision').insert(row).onConflict().ignore();
}

export interface RepairDecisionRow extends DecidedRepair {
  /** The skill that these decisions have made. */
  readonly skill_id: string | null;
}

/** Reads all decisions about equal repairs. */
export function listRepairDecisions(db: Db, repair: RepairKey): Promise<readonly RepairDecisionRow[]> {
  const { schema_sha256, project_id, capability, operation, place } = repair;
  return db('repair_decision')
    .where({ project_id, capability, operation, place, schema_sha256: toDigest(schema_sha256) })
    .orderBy('decision_id')
    .select('outcome', 'run_id', 'skill_id');
}

/** Names the skill in the decisions that it follows. */
export async function nameDecidedSkill(trx: Db, repair: RepairKey, skillId: string): Promise<void> {
  const { schema_sha256, project_id, capability, operation, place } = repair;
  await trx('repair_decision')
    .where({
      project_id,
      capability,
      operation,
      place,
      schema_sha256: toDigest(schema_sha256),
      outcome: 'for',
    })
    .update({ skill_id: skillId });
}

/** The decisions that a skill follows: an expression, null when it follows none. @param skill an expression of its id */
export function asDecidedBy(skill: string): string {
  return `(select json_build_object('by', json_agg(n.name order by n.since), 'times', sum(n.times)::int) from (
      select coalesce(k.name, d.decided_by) as name, min(d.decided_at) as since, count(*)::int as times
      from repair_decision d left join api_key k on k.key_id = d.decided_by
      where d.skill_id = ${skill} group by 1
    ) n having count(*) > 0)`;
}
