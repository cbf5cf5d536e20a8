import type { Db } from '../connect.ts';
import { purgePublishers } from './publisher.ts';

/**
 * Deletes instances that nobody has heard of for 7 days: evicted, deregistered, or quarantined without heartbeats.
 * Their attempts stay; names that are left without an instance are free again. @returns how many
 */
export async function purgeInstances(db: Db): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `delete from instance i
     where (down_since < now() - interval '7 days'
         or state = 'quarantined' and last_heartbeat_at < now() - interval '7 days')
       and not exists (select from attempt a where a.instance_id = i.instance_id
         and a.state in ('reserved', 'dispatched') and a.lease_until > now())
     returning 1`,
  );
  await purgePublishers(db);
  return rows.length;
}
