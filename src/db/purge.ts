/** Old rows go in small statements: one that takes all of a backlog runs into its time limit, and then for ever. */
import type { Db } from './connect.ts';

export interface Purge {
  readonly table: 'idempotency' | 'advice_answer' | 'session' | 'login_code' | 'webhook_delivery';
  /** The age from which rows are deleted. */
  readonly hours: number;
  /** Rows of one statement. */
  readonly batch?: number;
}

/** How much one call deletes; what is left is for the next. */
const mostBatches = 200;

/** @returns how many */
export async function purgeOld(db: Db, { table, hours, batch = 1_000 }: Purge): Promise<number> {
  let purged = 0;
  for (let round = 0; round < mostBatches; round++) {
    const { rowCount } = await db.raw<{ rowCount: number }>(
      `delete from ${table} where ctid = any (array(select ctid from ${table}
         where created_at < now() - make_interval(hours => ?) order by created_at limit ?))`,
      [hours, batch],
    );
    purged += rowCount;
    if (rowCount < batch) break;
  }
  return purged;
}
