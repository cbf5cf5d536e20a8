/**
 * Queries on many instances: for the registry, grouped by capability name, and for the polls of routers.
 *
 * A poll reads the changes since the last one, in one snapshot. `horizon` is the oldest transaction that was still open
 * then. That transaction and later ones write `changed_xid >= horizon`, so the next poll, which starts there, sees
 * every change at least once.
 */
import type { InstanceState, RoutedState } from '@capstan/core/contracts/capability';
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';
import type { NameInProject } from './capability-name.ts';
import type { HostKey } from './host.ts';
import {
  type InstanceJson,
  type InstanceRow,
  instanceColumns,
  polledColumns,
  routedState,
} from './instance.ts';

export interface ListedInstance extends InstanceRow {
  /** `draining`: drained, or deregistered with calls still open. `warming`: before its first success. `evicted`: down for long. */
  readonly shown_state: InstanceState;
}

const listed = `(
  select v.*, case when v.state = 'deregistered' and v.in_flight > 0 then 'draining'
    when v.is_evicted then 'evicted' else ${routedState} end as shown_state
  from (select ${instanceColumns} from instance i) v
)`;

interface InstanceFilter {
  /** Null: of all projects. */
  readonly projectId: string | null;
  readonly tag: string | null;
  /** Null: all but the evicted and the deregistered. */
  readonly state: InstanceState | null;
  readonly after: string | null;
  readonly limit: number;
}

/** The instances that serve a project, of the first `limit` capability names after `after` that have any, by name. */
export function listInstancePage(db: Db, filter: InstanceFilter): Promise<ListedInstance[]> {
  return query<ListedInstance>(db).all(
    `with shown as (
       select * from ${listed} l
       where (cast(:projectId as text) is null or serves(l.owner_project, l.shared_with, :projectId))
         and (cast(:tag as text) is null or :tag = any(l.tags))
         and case when cast(:state as text) is null then l.shown_state not in ('evicted', 'deregistered')
           else l.shown_state = :state end
         and (cast(:after as text) is null or l.name collate "C" > :after)
     ), page as (select distinct name collate "C" as name from shown order by 1 limit :limit)
     select shown.* from shown join page on page.name = shown.name
     order by shown.name collate "C", shown.registered_at, shown.instance_id`,
    { ...filter },
  );
}

export function listInstancesByName(db: Db, { projectId, name }: NameInProject): Promise<ListedInstance[]> {
  return query<ListedInstance>(db).all(
    `select * from ${listed} l where l.name = ? and serves(l.owner_project, l.shared_with, ?)
     order by l.registered_at, l.instance_id`,
    [name, projectId],
  );
}

/** The instances on hosts that calls can reach, or that hold calls; by host, then by name. */
export function listInstancesOnHosts(db: Db, hosts: readonly HostKey[]): Promise<ListedInstance[]> {
  return query<ListedInstance>(db).all(
    `select l.* from unnest(?::text[], ?::text[]) k (owner_project, name)
     join ${listed} l on l.owner_project = k.owner_project and l.host = k.name
     where l.shown_state not in ('evicted', 'deregistered') or l.in_flight > 0
     order by l.owner_project, l.host, l.name collate "C", l.registered_at, l.instance_id`,
    [hosts.map(({ owner_project }) => owner_project), hosts.map(({ name }) => name)],
  );
}

/** Lists the instances that have changed since a horizon, and those with these ids. */
export function listChangedInstances(db: Db, since: string, ids: readonly string[]): Promise<InstanceRow[]> {
  return query<InstanceRow>(db).all(
    `select ${instanceColumns} from instance i
     where i.changed_xid >= ?::text::xid8 or i.instance_id = any (?)`,
    [since, [...ids]],
  );
}

/** Held slots: open attempts, and leased slots (except those of `holder`). Leases past their end hold nothing. */
const heldSlots = `(select instance_id, sum(slots)::int as held from (
    select instance_id, count(*) as slots from attempt
      where state in ('reserved', 'dispatched') and later ->> 'slot' is distinct from 'freed' group by 1
    union all select instance_id, slots from slot_lease where expires_at > now() and holder is distinct from ?::uuid) s
  group by 1)`;

/** Counts the held slots of each instance; instances without them are absent. */
export async function countHeldCalls(db: Db): Promise<ReadonlyMap<string, number>> {
  const rows = await query<{ instance_id: string; held: number }>(db).all(`select * from ${heldSlots} h`, [
    null,
  ]);
  return new Map(rows.map(({ instance_id, held }) => [instance_id, held]));
}

export interface FeedRow extends InstanceJson<(typeof polledColumns)[number]> {
  readonly state: RoutedState;
  /** Reported queue depth beyond our own calls that were open at that time. */
  readonly reported_extra: number;
  /** Unix time by the database's clock. */
  readonly reported_at_ms: number | null;
  /** Time since which it is down or deregistered. */
  readonly down_since_ms: number | null;
  readonly breaker_until_ms: number | null;
  /** When its last successful call ended. */
  readonly last_call_ms: number | null;
  /** How many keys it holds loaded at once. */
  readonly max_resident: number;
  /** By the newest registration that names its host: that comes with the row of its instance. Null: no host. */
  readonly slots_of_host: number | null;
}

export interface FeedPoll {
  readonly horizon: string;
  readonly now_ms: number;
  readonly instances: readonly FeedRow[];
  /** Held slots by instance, except those of the holder's leases; absent = 0. */
  readonly held: Readonly<Record<string, number>>;
  /** Instances for whose leased slots of the holder another router waits. */
  readonly slot_requests: readonly string[];
  /** When the oldest call that holds a slot of an instance with keys began, Unix ms; absent = it has none. */
  readonly busy_since: Readonly<Record<string, number>>;
  /** Changed averages of calls with keys. */
  readonly load_times: readonly (readonly [
    ownerProject: string,
    name: string,
    key: string,
    warmMs: number | null,
    coldMs: number | null,
  ])[];
  /** Calls of steps in line, by line and then by rank; absent = 0. */
  readonly lines: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** @param since the last poll's horizon; `0` reads all @param holder the process that polls: four times a second */
export function pollInstances(db: Db, since: string, holder: string | null = null): Promise<FeedPoll> {
  return query<FeedPoll>(db, 'poll_instances').one(
    `select pg_snapshot_xmin(pg_current_snapshot())::text as horizon,
       extract(epoch from now())::double precision * 1000 as now_ms,
       coalesce((select json_agg(row_to_json(changed)) from (
         select ${polledColumns.join(', ')}, ${routedState} as state,
           greatest(0, coalesce(queue_depth, 0) - queue_depth_held) as reported_extra,
           extract(epoch from queue_depth_at)::double precision * 1000 as reported_at_ms,
           extract(epoch from down_since)::double precision * 1000 as down_since_ms,
           extract(epoch from breaker_until)::double precision * 1000 as breaker_until_ms,
           extract(epoch from last_call_at)::double precision * 1000 as last_call_ms,
           coalesce(max_resident, most_reported) as max_resident,
           case when host is not null then (select h.slots from host h
             where h.owner_project = instance.owner_project and h.name = instance.host) end as slots_of_host
         from instance where changed_xid >= ?::xid8 order by instance_id) changed), '[]') as instances,
       coalesce((select json_object_agg(instance_id, held) from ${heldSlots} h), '{}') as held,
       coalesce((select json_agg(instance_id) from slot_lease where holder = ?::uuid and is_wanted), '[]') as slot_requests,
       coalesce((select json_object_agg(instance_id, began) from (
         select a.instance_id, extract(epoch from min(a.started_at))::double precision * 1000 as began
         from instance i join attempt a on a.instance_id = i.instance_id and a.state in ('reserved', 'dispatched')
           and a.later ->> 'slot' is distinct from 'freed'
         where i.resident <> '{}' group by 1) b), '{}') as busy_since,
       coalesce((select json_agg(json_build_array(owner_project, name, key, warm_ms, cold_ms)) from load_time
         where changed_xid >= ?::xid8), '[]') as load_times,
       coalesce((select json_object_agg(line, ranks) from (
         select line, json_object_agg(priority, calls) as ranks from (
           select line, priority, count(*) as calls from queued_call group by 1, 2) r group by 1) l), '{}') as lines`,
    [since, holder, holder, since],
  );
}
