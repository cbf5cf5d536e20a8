/** Ladders by themselves that Temporal has taken and that have not ended. */
import type { Db } from '../connect.ts';

/** By id, after `after`: those that it took so long ago. */
export async function listDeliveredLadders(
  db: Db,
  {
    after,
    olderThanMs,
    limit,
  }: { readonly after: string; readonly olderThanMs: number; readonly limit: number },
): Promise<readonly { readonly escalation_id: string }[]> {
  const { rows } = await db.raw<{ rows: { escalation_id: string }[] }>(
    `select escalation_id from escalation
     where run_id is null and start_delivered_at < clock_timestamp() - ? * interval '1 millisecond'
       and finished_at is null and escalation_id > ? order by escalation_id limit ?`,
    [olderThanMs, after, limit],
  );
  return rows;
}

/** Its start is delivered again, with the answer of the person that it waits for. False when it has ended. */
export async function forgetLadderStart(db: Db, escalationId: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with forgotten as (
       update escalation set start_delivered_at = null where escalation_id = ? and finished_at is null
       returning review_id
     ), untold as (
       update review r set delivered_at = null from forgotten f where r.review_id = f.review_id
         and r.state in ('resolved', 'expired')
     )
     select 1 from forgotten`,
    [escalationId],
  );
  return rows.length > 0;
}
