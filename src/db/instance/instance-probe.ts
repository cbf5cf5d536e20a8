/** Queries of a probing round. Rows that another process works on are skipped, so rounds never wait for another. */
import type { Db } from '../connect.ts';
import { type InstanceRow, instanceColumns, type StateChange, silence } from './instance.ts';

/** Applies `change` to every instance that is up and silent and not due for a probe anyway. @returns how many */
export async function changeSilentInstances(db: Db, change: StateChange): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `update instance set state = ?, reason = ?, failed_probes = ?,
       next_probe_at = now() + ?::double precision * interval '1 millisecond'
     where instance_id in (
       select instance_id from instance
       where state = 'up' and next_probe_at is null and last_heartbeat_at < now() - ${silence}
       for no key update skip locked)
     returning 1`,
    [change.state, change.reason, change.failed_probes, change.next_probe_in_ms],
  );
  return rows.length;
}

/** Makes a probe due of every other instance at the endpoint: one of them is not what it was. @returns how many */
export async function probeNamesakes(
  db: Db,
  { instance_id, endpoint }: Pick<InstanceRow, 'instance_id' | 'endpoint'>,
): Promise<number> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `update instance set next_probe_at = now() where instance_id in (
       select instance_id from instance
       where endpoint = ? and instance_id <> ? and state in ('up', 'suspect') for no key update skip locked)
     returning 1`,
    [endpoint, instance_id],
  );
  return rows.length;
}

/** Makes a probe due within `withinMs`, if none is due earlier. */
export async function probeSoon(db: Db, instanceId: string, withinMs: number): Promise<void> {
  await db.raw(
    `update instance set next_probe_at = least(next_probe_at, now() + ? * interval '1 millisecond')
     where instance_id = ?`,
    [withinMs, instanceId],
  );
}

/** Takes due probes for this process; they are due again after `leaseMs`, should it die. */
export async function claimDueProbes(db: Db, limit: number, leaseMs: number): Promise<InstanceRow[]> {
  const { rows } = await db.raw<{ rows: InstanceRow[] }>(
    `update instance i set next_probe_at = now() + ? * interval '1 millisecond'
     where i.instance_id in (
       select instance_id from instance where next_probe_at <= now()
       order by state = 'down', next_probe_at limit ? for no key update skip locked)
     returning ${instanceColumns}`,
    [leaseMs, limit],
  );
  return rows;
}
