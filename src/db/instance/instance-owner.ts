/** Whose an instance is, and how many a project has. */
import type { Db } from '../connect.ts';

/** Serialises such counts of a project until the transaction ends. Those that left do not count. */
export async function countInstancesOf(trx: Db, projectId: string): Promise<number> {
  await trx.raw('select pg_advisory_xact_lock(hashtextextended(?, 0))', [`instances ${projectId}`]);
  const { rows } = await trx.raw<{ rows: [{ count: number }] }>(
    `select count(*)::int as count from instance where owner_project = ? and state <> 'deregistered'`,
    [projectId],
  );
  return rows[0].count;
}

/** Another project registers in its place: what was known of its calls is not of this one's. */
export async function moveInstance(trx: Db, instanceId: string, projectId: string): Promise<void> {
  await trx.raw('update instance set owner_project = ?, generation = generation + 1 where instance_id = ?', [
    projectId,
    instanceId,
  ]);
}
