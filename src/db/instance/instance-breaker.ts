/** Queries on the breaker of an instance; null `breaker_until` = closed. */
import type { Db } from '../connect.ts';

/** Faults in a row; the one call of a half-open breaker failed; a half-open instance does not even answer `/health`. */
export type OpeningReason = 'faults' | 'trial' | 'health';

/**
 * Opens a breaker: `faults` a closed one, `trial` any, `health` a half-open one. One that another process opened
 * meanwhile stays as it is.
 * @param openMs for how long, by how often it was opened in a row before
 * @returns for how long it is open, or null
 */
export function openBreaker(
  db: Db,
  instanceId: string,
  { because, openMs }: { readonly because: OpeningReason; readonly openMs: (openings: number) => number },
): Promise<number | null> {
  return db.transaction(async (trx) => {
    const { rows } = await trx.raw<{
      rows: { breaker_openings: number; reasons: readonly OpeningReason[] }[];
    }>(
      `select breaker_openings, case when breaker_until is null then array['faults', 'trial']
         when breaker_until <= clock_timestamp() then array['trial', 'health'] else array['trial'] end as reasons
       from instance where instance_id = ? for no key update`,
      [instanceId],
    );
    const [row] = rows;
    if (row === undefined || !row.reasons.includes(because)) return null;
    const ms = Math.round(openMs(row.breaker_openings));
    await trx.raw(
      `update instance set breaker_openings = breaker_openings + 1,
         breaker_until = clock_timestamp() + ? * interval '1 millisecond' where instance_id = ?`,
      [ms, instanceId],
    );
    return ms;
  });
}

export async function closeBreaker(db: Db, instanceId: string): Promise<void> {
  await db.raw('update instance set breaker_until = null, breaker_openings = 0 where instance_id = ?', [
    instanceId,
  ]);
}
