/**
 * Hosts: machines of a project, whose slots the calls of several instances share (sql/hosts.sql). Every write that
 * touches instances and a host locks the instances first (L5, L6).
 */
import type { RegisteredHost } from '@capstan/core/contracts/host';
import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';
import { query } from '../statements.ts';
import { warmAgain } from './instance.ts';
import { type DrainColumns, type DrainRow, endOfDrain } from './instance-drain.ts';

export interface HostKey {
  readonly owner_project: string;
  readonly name: string;
}

export interface HostRow extends HostKey, DrainRow {
  readonly slots: number;
  readonly memory_gb: number | null;
  /** Slots that open calls take. */
  readonly held: number;
}

const hostColumns = 'h.*, host_held(h.owner_project, h.name, h.slots) as held';

interface HostFilter {
  /** Null: of all projects. */
  readonly projectId: string | null;
  /** The last one before the page; null: from the beginning. */
  readonly after: HostKey | null;
  readonly limit: number;
}

/** Those that are drained, or have an instance that has not left; by name. */
export function listHosts(db: Db, { projectId, after, limit }: HostFilter): Promise<HostRow[]> {
  return query<HostRow>(db).all(
    `select ${hostColumns} from host h
     where (cast(:projectId as text) is null or h.owner_project = :projectId)
       and (cast(:name as text) is null or (h.name, h.owner_project) > (:name, :owner))
       and (h.drained_by is not null or exists (select from instance i
         where i.owner_project = h.owner_project and i.host = h.name and i.state <> 'deregistered'))
     order by h.name, h.owner_project limit :limit`,
    { projectId, name: after?.name ?? null, owner: after?.owner_project ?? null, limit },
  );
}

export async function findHost(db: Db, { owner_project, name }: HostKey): Promise<HostRow | null> {
  const row = await query<HostRow>(db).first(
    `select ${hostColumns} from host h where h.owner_project = ? and h.name = ?`,
    [owner_project, name],
  );
  return row ?? null;
}

/** Until the transaction ends, no instance joins the host, and its drain stays. Taken before instances. */
export function lockHostName(trx: Db, { owner_project, name }: HostKey): Promise<void> {
  return takeLock(trx, 'host', owner_project, name);
}

/** Sets its size, by the newest registration; one without memory leaves that. */
export async function joinHost(
  trx: Db,
  owner_project: string,
  { name, slots, memory_gb }: RegisteredHost,
): Promise<void> {
  await trx.raw(
    `insert into host (owner_project, name, slots, memory_gb) values (:owner_project, :name, :slots, :memory_gb)
     on conflict (owner_project, name) do update
       set slots = excluded.slots, memory_gb = coalesce(excluded.memory_gb, host.memory_gb)
       where (host.slots, host.memory_gb) is distinct from (excluded.slots, coalesce(excluded.memory_gb, host.memory_gb))`,
    { owner_project, name, slots, memory_gb: memory_gb ?? null },
  );
}

/**
 * An instance that has come to a drained host is drained with it; one that was drained with a host and has left it is
 * not. A drain of its own stays.
 * @param hostBefore the host before its registration; null: none
 */
export async function followHost(trx: Db, instanceId: string, hostBefore: string | null): Promise<void> {
  await trx.raw(
    `update instance i set drained_by = h.drained_by, drained_at = h.drained_at, drain_reason = h.drain_reason,
       drain_until = h.drain_until, drained_with_host = h.drained_by is not null
     from (select ?::text as id) n left join instance o on o.instance_id = n.id
       left join host h on h.owner_project = o.owner_project and h.name = o.host
     where i.instance_id = n.id and i.host is distinct from ?
       and (i.drained_with_host or i.drained_by is null and h.drained_by is not null)`,
    [instanceId, hostBefore],
  );
}

/** Locks the instances of a host, by id. @returns their names, each once */
export function lockInstancesOn(trx: Db, { owner_project, name }: HostKey): Promise<string[]> {
  return query<{ name: string }>(trx)
    .all(
      `select i.name from instance i where i.owner_project = ? and i.host = ? order by i.instance_id
       for no key update`,
      [owner_project, name],
    )
    .then((rows) => [...new Set(rows.map((row) => row.name))]);
}

/** Drains it with all of its instances that have no drain of their own; repeated, it replaces reason and end. */
export async function setHostDrain(
  trx: Db,
  host: HostKey,
  { by, reason, until }: DrainColumns,
): Promise<void> {
  const values = { ...host, by, reason, until };
  await trx.raw(
    `update host set drained_by = :by, drained_at = coalesce(drained_at, now()), drain_reason = :reason,
       drain_until = :until where owner_project = :owner_project and name = :name`,
    values,
  );
  await trx.raw(
    `update instance set drained_by = :by, drained_at = coalesce(drained_at, now()), drain_reason = :reason,
       drain_until = :until, drained_with_host = true
     where owner_project = :owner_project and host = :name and (drained_by is null or drained_with_host)`,
    values,
  );
}

const endOfHostDrain = 'drained_by = null, drained_at = null, drain_reason = null, drain_until = null';

/** Cancels its drain, and the drains of instances that came from it. @returns whether it was drained */
export async function endHostDrain(trx: Db, { owner_project, name }: HostKey): Promise<boolean> {
  await trx.raw(
    `update instance set ${endOfDrain} where owner_project = ? and host = ? and drained_with_host`,
    [owner_project, name],
  );
  return query(trx).some(
    `update host set ${endOfHostDrain} where owner_project = ? and name = ? and drained_by is not null returning 1`,
    [owner_project, name],
  );
}

/** Ends the drains of hosts whose time is over; those of their instances end at the same time by themselves. */
export function endDueHostDrains(db: Db): Promise<HostKey[]> {
  return query<HostKey>(db).all(
    `update host set ${endOfHostDrain} where drain_until <= now() returning owner_project, name`,
  );
}

/** Makes the warm-ups of its instances due. @returns how many have one */
export function warmHost(trx: Db, { owner_project, name }: HostKey): Promise<number> {
  return query(trx).written(
    `update instance set ${warmAgain('warm_up')}
     where owner_project = ? and host = ? and warm_up is not null and state <> 'deregistered'`,
    [owner_project, name],
  );
}

/** Deletes hosts that no instance names any more. One that an instance joins meanwhile is locked, or seen. */
export function purgeHosts(db: Db): Promise<number> {
  const isLeft = `not exists (select from instance i where i.owner_project = h.owner_project and i.host = h.name)`;
  return db.transaction(async (trx) => {
    const left = await query<HostKey>(trx).all(
      `select h.owner_project, h.name from host h where ${isLeft} for update of h skip locked`,
    );
    if (left.length === 0) return 0;
    return query(trx).written(
      `delete from host h using unnest(?::text[], ?::text[]) k (owner_project, name)
       where h.owner_project = k.owner_project and h.name = k.name and ${isLeft}`,
      [left.map(({ owner_project }) => owner_project), left.map(({ name }) => name)],
    );
  });
}
