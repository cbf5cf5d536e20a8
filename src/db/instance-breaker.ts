/** Queries on the breaker of an instance; null `breaker_until` = closed. */
import type { Db } from './connect.ts';

/**
 * Opens a closed breaker, or after a failed trial any; one that another process opened meanwhile stays as it is.
 * @param openMs for how long, by how often it was opened in a row before
 * @returns for how long it is open, or null
 */
export const openBreaker = (
  db: Db,
  instanceId: string,
  { isTrial, openMs }: { readonly isTrial: boolean; readonly openMs: (openings: number) => number },
): Promise<number | null> =>
  db.transaction(async (trx) => {
    const { rows } = await trx.raw<{ rows: { breaker_openings: number; is_closed: boolean }[] }>(
      `select breaker_openings, breaker_until is null as is_closed from instance where instance_id = ?
       for no key update`,
      [instanceId],
    );
    const [row] = rows;
    if (row === undefined || !(isTrial || row.is_closed)) return null;
    const ms = Math.round(openMs(row.breaker_openings));
    await trx.raw(
      `update instance set breaker_openings = breaker_openings + 1,
         breaker_until = clock_timestamp() + ? * interval '1 millisecond' where instance_id = ?`,
      [ms, instanceId],
    );
    return ms;
  });

export const closeBreaker = async (db: Db, instanceId: string): Promise<void> => {
  await db.raw('update instance set breaker_until = null, breaker_openings = 0 where instance_id = ?', [
    instanceId,
  ]);
};
