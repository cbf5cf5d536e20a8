/**
 * Queries on one registered instance, its owner and its probes. Every read adds the facts that depend on the current
 * time: silence, expiry, open calls. A probing round skips rows that another process has locked, so rounds never wait
 * for each other.
 */

import type {
  CostModel,
  Registration,
  SharedWith,
  StoredState,
  WarmUp,
} from '@capstan/core/contracts/capability';
import { evictedAfterMs, silenceMs } from '@capstan/core/contracts/limits';
import type { Db } from '../connect.ts';
import { takeLock } from '../locks.ts';
import { query, toJsonb } from '../statements.ts';
import { purgePublishers } from './capability-name.ts';
import { forgetCalls } from './instance-calls.ts';
import { recordResident } from './residency.ts';

export interface InstanceColumns {
  readonly instance_id: string;
  readonly owner_project: string;
  readonly name: string;
  /** Normalised: no trailing slash, no default port. */
  readonly endpoint: string;
  readonly version: string;
  readonly spec_url: string;
  readonly health_url: string;
  readonly cost_type: CostModel['type'];
  /** numeric as text, USD per second or per call */
  readonly rate_usd: string;
  readonly cost_notes: string | null;
  readonly tags: readonly string[];
  readonly max_concurrency: number;
  readonly settle: Registration['settle'];
  readonly state: StoredState;
  readonly reason: string | null;
  readonly generation: number;
  /** The registration replaced one that was not deregistered. */
  readonly replaces: boolean;
  readonly queue_depth: number | null;
  readonly queue_depth_held: number;
  readonly queue_depth_at: Date | null;
  readonly duration_ms: number | null;
  readonly deviation_ms: number | null;
  readonly mean_cost_usd: number | null;
  readonly success_count: number;
  readonly failure_count: number;
  readonly spec_digest: string | null;
  /** Protocols of models that it speaks itself; null: none. */
  readonly protocols: readonly string[] | null;
  /** A closed connection ends its work. */
  readonly stops: boolean;
  /** It may answer calls later, and whether they keep their slots; null: it answers in place. */
  readonly answers_later: 'held' | 'freed' | null;
  readonly failed_probes: number;
  readonly next_probe_at: Date | null;
  readonly registered_at: Date;
  readonly last_heartbeat_at: Date;
  /** Time since which it is down or deregistered; else null. */
  readonly down_since: Date | null;
  /** Uptime from the last `/health`, and the time of that report. */
  readonly uptime_ms: number | null;
  readonly uptime_at: Date | null;
  /** When an open breaker lets a trial call through; null: closed. */
  readonly breaker_until: Date | null;
  readonly breaker_openings: number;
  /** Expressions over the input of a call, USD. */
  readonly worst_case: string | null;
  readonly expected_cost: string | null;
  /** Where its prices are from. */
  readonly price_source: string | null;
  readonly start_cost: string | null;
  readonly token_cost: string | null;
  /** How many ended calls used so many units, by `lengthBucket`; null: none is known. */
  readonly lengths: readonly number[] | null;
  /** An expression over the input of a call: the key of what it needs loaded; null: nothing. */
  readonly affinity: string | null;
  /** How many keys it holds at once; null: as many as it reports. */
  readonly max_resident: number | null;
  /** Keys that it has loaded, as far as it is known, the latest first. */
  readonly resident: readonly string[];
  readonly most_reported: number;
  /** Keys that it reported wrongly, and until when they are not believed, Unix ms. */
  readonly distrusted: Readonly<Record<string, number>>;
  /** Its calls with a key take this multiple of the usual time; null: unknown. */
  readonly pace: number | null;
  readonly last_call_at: Date | null;
  /** Calls that cost more than their worst case. */
  readonly overruns: number;
  /** By project: when the last three of its calls did, newest first, Unix ms; null: there were fewer. */
  readonly overran: Readonly<Record<string, readonly (number | null)[]>>;
  /** The key or person that drains it; null: it is not drained. */
  readonly drained_by: string | null;
  readonly drained_at: Date | null;
  readonly drain_reason: string | null;
  /** Null: until `undrain`. */
  readonly drain_until: Date | null;
  readonly warm_up: WarmUp | null;
  /** When its warm-up is tried next, or the open one is given up; null: it is warm. */
  readonly warm_due_at: Date | null;
  /** Why the last warm-up failed. */
  readonly warm_error: string | null;
  readonly shared_with: SharedWith;
  /** The machine whose slots its calls take, with its size as this instance registered it; null: none. */
  readonly host: string | null;
  readonly host_slots: number | null;
  readonly host_memory_gb: number | null;
  /** The slots of the machine that a call takes; null without one. */
  readonly takes: number | null;
  /** It is drained by the drain of its host. */
  readonly drained_with_host: boolean;
}

/** A row with the facts that depend on the current time. */
export interface InstanceRow extends InstanceColumns {
  /** Held slots: open attempts of all routers, and slots that they have leased. */
  readonly in_flight: number;
  readonly is_silent: boolean;
  /** Down for so long that it is hidden and no longer probed. */
  readonly is_evicted: boolean;
  /** Down or deregistered for as long: its address is free for other projects. */
  readonly is_left: boolean;
  readonly is_breaker_open: boolean;
  /** Time since it registered, and since `uptime_at`, by the database's clock. */
  readonly registered_age_ms: number;
  readonly uptime_age_ms: number | null;
  readonly expires_at: Date;
}

/** The columns of a registration, in one list for insert, update and comparison. */
const registeredColumns = [
  'version',
  'spec_url',
  'health_url',
  'cost_type',
  'rate_usd',
  'cost_notes',
  'worst_case',
  'expected_cost',
  'price_source',
  'start_cost',
  'token_cost',
  'tags',
  'max_concurrency',
  'settle',
  'warm_up',
  'max_resident',
  'host',
  'host_slots',
  'host_memory_gb',
  'takes',
] as const satisfies readonly (keyof InstanceColumns)[];

/** The SQL of `routedState` (core/instance-states.ts). */
export const routedState = `case when state not in ('up', 'suspect') then state when drained_by is not null then 'draining'
  when state = 'up' and warm_due_at is not null then 'warming' else state end`;

/** Columns that routers poll unchanged. */
export const polledColumns = [
  'instance_id',
  'owner_project',
  'name',
  'version',
  'endpoint',
  'cost_type',
  'rate_usd',
  'tags',
  'max_concurrency',
  'spec_digest',
  'duration_ms',
  'deviation_ms',
  'mean_cost_usd',
  'success_count',
  'failure_count',
  'settle',
  'worst_case',
  'expected_cost',
  'price_source',
  'overran',
  'shared_with',
  'protocols',
  'start_cost',
  'token_cost',
  'stops',
  'answers_later',
  'lengths',
  'affinity',
  'resident',
  'distrusted',
  'pace',
  'host',
  'takes',
] as const satisfies readonly (keyof InstanceColumns)[];

/** Columns as JSON holds them: a price is a number there. */
export type InstanceJson<Column extends keyof InstanceColumns> = {
  readonly [Key in Column]: Key extends 'rate_usd' ? number : InstanceColumns[Key];
};

/** Columns that may be null may be absent. */
type OrAbsent<Row> = {
  readonly [Key in keyof Row as null extends Row[Key] ? never : Key]: Row[Key];
} & { readonly [Key in keyof Row as null extends Row[Key] ? Key : never]?: Row[Key] | undefined };

/** Without `shared_with`, an instance serves the same projects as before. */
export type Registered = OrAbsent<InstanceJson<(typeof registeredColumns)[number]>> & {
  readonly shared_with?: SharedWith | undefined;
};

export interface InstanceKey {
  readonly name: string;
  readonly endpoint: string;
}

/** A change of the state; `next_probe_in_ms` counts from the database's now. */
interface StateChange extends Pick<InstanceRow, 'state' | 'reason' | 'failed_probes'> {
  readonly next_probe_in_ms: number | null;
}

const silence = `interval '${silenceMs} milliseconds'`;

const heldSlots = `((select count(*)::int from attempt a where a.instance_id = i.instance_id
    and a.state in ('reserved', 'dispatched') and a.later ->> 'slot' is distinct from 'freed')
  + (select coalesce(sum(l.slots), 0)::int from slot_lease l where l.instance_id = i.instance_id and l.expires_at > now()))`;

function ageMs(column: string): string {
  return `extract(epoch from now() - ${column})::double precision * 1000`;
}

/** Columns of InstanceRow, for `instance i`. */
export const instanceColumns = `i.*, ${heldSlots} as in_flight,
  i.last_heartbeat_at < now() - ${silence} as is_silent, i.last_heartbeat_at + ${silence} as expires_at,
  coalesce(i.state = 'down' and i.down_since < now() - interval '${evictedAfterMs} milliseconds', false) as is_evicted,
  coalesce(i.down_since < now() - interval '${evictedAfterMs} milliseconds', false) as is_left,
  coalesce(i.breaker_until > now(), false) as is_breaker_open,
  ${ageMs('i.registered_at')} as registered_age_ms, ${ageMs('i.uptime_at')} as uptime_age_ms`;

const probeAt = `now() + ?::double precision * interval '1 millisecond'`;

/** Sets the columns of a change of state, with the values of `valuesOf`. */
const setState = `state = ?, reason = ?, failed_probes = ?, next_probe_at = ${probeAt}`;

function valuesOf({ state, reason, failed_probes, next_probe_in_ms }: StateChange) {
  return [state, reason, failed_probes, next_probe_in_ms];
}

/** Makes the warm-up of an instance due that has one. */
export function warmAgain(warmUp: string): string {
  return `warm_due_at = case when ${warmUp} is null then null else now() end, warm_error = null`;
}

/** Columns of the registration `r`, passed as JSON. */
const fromJson = 'jsonb_populate_record(null::instance, ?::jsonb) r';

function columnsOf(table: 'i' | 'r', columns: readonly string[]): string {
  return columns.map((column) => `${table}.${column}`).join(', ');
}

const insertedColumns = ['instance_id', 'owner_project', 'name', 'endpoint', ...registeredColumns] as const;

export async function findInstance(db: Db, instanceId: string): Promise<InstanceRow | null> {
  const row = await query<InstanceRow>(db).first(
    `select ${instanceColumns} from instance i where i.instance_id = ?`,
    [instanceId],
  );
  return row ?? null;
}

/** Locks the instance until the transaction ends. Transactions that hold a lock on it can still claim calls. */
export async function lockInstance(db: Db, instanceId: string): Promise<InstanceRow | null> {
  const row = await query<InstanceRow>(db).first(
    `select ${instanceColumns} from instance i where i.instance_id = ? for no key update of i`,
    [instanceId],
  );
  return row ?? null;
}

export async function lockInstanceByKey(
  db: Db,
  { name, endpoint }: InstanceKey,
): Promise<InstanceRow | null> {
  const row = await query<InstanceRow>(db).first(
    `select ${instanceColumns} from instance i where i.name = ? and i.endpoint = ? for no key update of i`,
    [name, endpoint],
  );
  return row ?? null;
}

/** @returns false if the key is in use; nothing was written */
export function insertInstance(
  db: Db,
  row: Registered & InstanceKey & Pick<InstanceRow, 'instance_id' | 'owner_project'>,
  change: StateChange,
): Promise<boolean> {
  return query(db).some(
    `insert into instance (${insertedColumns.join(', ')}, shared_with, state, reason, failed_probes, next_probe_at, warm_due_at)
     select ${columnsOf('r', insertedColumns)}, coalesce(r.shared_with, '[]'), ?, ?, ?, ${probeAt},
       case when r.warm_up is null then null else now() end from ${fromJson}
     on conflict (name, endpoint) do nothing returning 1`,
    [...valuesOf(change), toJsonb(row)],
  );
}

/**
 * Writes a repeated registration; the generation increases if it differs. Its spec will be read again, and it is warmed
 * up again. Facts about its process stay until a probe shows another process. A drain stays, and so does the list of
 * its sharers, unless the registration has others.
 */
export async function updateRegistration(
  db: Db,
  row: Registered & Pick<InstanceRow, 'instance_id'>,
  change: StateChange,
): Promise<void> {
  await db.raw(
    `update instance i set
       generation = i.generation + ((${columnsOf('i', registeredColumns)}, i.shared_with)
         is distinct from (${columnsOf('r', registeredColumns)}, coalesce(r.shared_with, i.shared_with)))::int,
       shared_with = coalesce(r.shared_with, i.shared_with),
       ${registeredColumns.map((column) => `${column} = r.${column}`).join(', ')}, ${setState},
       replaces = i.state <> 'deregistered', down_since = null, spec_digest = null, registered_at = now(),
       last_heartbeat_at = now(), ${warmAgain('r.warm_up')}
     from ${fromJson} where i.instance_id = r.instance_id`,
    [...valuesOf(change), toJsonb(row)],
  );
}

/** Sets a new state. An instance that was down or quarantined gets its spec read again: it may be another program. */
export async function updateInstanceState(db: Db, instanceId: string, change: StateChange): Promise<void> {
  const { state } = change;
  await db.raw(
    `update instance set ${setState},
       spec_digest = case when ?::text in ('down', 'quarantined') then null else spec_digest end,
       down_since = case when ?::text not in ('down', 'deregistered') then null
         when state = ? then down_since else now() end
     where instance_id = ?`,
    [...valuesOf(change), state, state, state, instanceId],
  );
}

interface FoundSpec extends Pick<InstanceColumns, 'protocols' | 'stops' | 'answers_later' | 'affinity'> {
  readonly digest: string;
  /** Where the address leads, as the probe was connected. */
  readonly peer: string | null;
}

export async function updateSpecDigest(
  db: Db,
  instanceId: string,
  { digest, protocols, stops, answers_later, affinity, peer }: FoundSpec,
): Promise<void> {
  await db.raw(
    `update instance set spec_digest = :digest, known_digest = :digest, protocols = :protocols::text[],
       stops = :stops,
       answers_later = :answers_later, affinity = :affinity, peer = :peer
     where instance_id = :instanceId`,
    { digest, protocols, stops, answers_later, affinity, peer, instanceId },
  );
}

export async function recordHeartbeat(db: Db, instanceId: string): Promise<void> {
  await db.raw('update instance set last_heartbeat_at = now() where instance_id = ?', [instanceId]);
}

/** What an instance reports of itself; absent: nothing. */
export interface InstanceReport {
  readonly queue_depth?: number | undefined;
  readonly resident?: string[] | undefined;
}

export async function recordReport(
  db: Db,
  instanceId: string,
  { queue_depth, resident }: InstanceReport,
): Promise<void> {
  if (queue_depth !== undefined) await recordQueueDepth(db, instanceId, queue_depth);
  if (resident !== undefined) await recordResident(db, instanceId, resident);
}

/** @param queueDepth reported by the instance, stored with our number of open calls at this time */
async function recordQueueDepth(db: Db, instanceId: string, queueDepth: number): Promise<void> {
  await db.raw(
    `update instance i set queue_depth = ?, queue_depth_at = now(), queue_depth_held = ${heldSlots}
     where i.instance_id = ?`,
    [queueDepth, instanceId],
  );
}

/** Serialises these counts per project until the transaction ends. Deregistered instances do not count. */
export async function countInstancesOf(trx: Db, projectId: string): Promise<number> {
  await takeLock(trx, 'instances', projectId);
  const row = await query<{ count: number }>(trx).one(
    `select count(*)::int as count from instance where owner_project = ? and state <> 'deregistered'`,
    [projectId],
  );
  return row.count;
}

/**
 * Another project registers in its place. Deregistrations of the earlier generation become stale, its drain ends, it
 * serves its new owner alone, and nothing is left of what the calls of the former owner have shown.
 */
export async function moveInstance(trx: Db, instanceId: string, projectId: string): Promise<void> {
  await trx.raw(
    `update instance set owner_project = ?, generation = generation + 1, drained_by = null, drained_at = null,
       drain_reason = null, drain_until = null, drained_with_host = false, shared_with = '[]', known_digest = null,
       peer = null, affinity = null, overruns = 0, overran = '{}'
     where instance_id = ?`,
    [projectId, instanceId],
  );
  await forgetCalls(trx, instanceId);
}

/** @returns whether that was different before */
export function setSharing(trx: Db, instanceId: string, sharedWith: SharedWith): Promise<boolean> {
  return query(trx).some(
    `update instance set shared_with = cast(:shared_with as jsonb)
     where instance_id = :instance_id and shared_with <> cast(:shared_with as jsonb) returning 1`,
    { instance_id: instanceId, shared_with: toJsonb(sharedWith) },
  );
}

/** Locks the instances of a project under a name, by id; the deregistered ones too. */
export function lockInstancesOf(trx: Db, projectId: string, name: string): Promise<InstanceRow[]> {
  return query<InstanceRow>(trx).all(
    `select ${instanceColumns} from instance i where i.owner_project = ? and i.name = ?
     order by i.instance_id for no key update of i`,
    [projectId, name],
  );
}

/** Applies `change` to every instance that is up, silent and without a scheduled probe. @returns how many */
export async function changeSilentInstances(db: Db, change: StateChange): Promise<number> {
  return query(db).written(
    `update instance set ${setState} where instance_id in (
       select instance_id from instance
       where state = 'up' and next_probe_at is null and last_heartbeat_at < now() - ${silence}
       for no key update skip locked)`,
    valuesOf(change),
  );
}

/** Makes probes due for all other instances at the endpoint, because one of them has changed. @returns how many */
export async function probeNamesakes(
  db: Db,
  { instance_id, endpoint }: Pick<InstanceRow, 'instance_id' | 'endpoint'>,
): Promise<number> {
  return query(db).written(
    `update instance set next_probe_at = now() where instance_id in (
       select instance_id from instance
       where endpoint = ? and instance_id <> ? and state in ('up', 'suspect') for no key update skip locked)`,
    [endpoint, instance_id],
  );
}

/** Makes a probe due within `withinMs`, if none is due earlier. */
export async function probeSoon(db: Db, instanceId: string, withinMs: number): Promise<void> {
  await db.raw(
    `update instance set next_probe_at = least(next_probe_at, now() + ? * interval '1 millisecond')
     where instance_id = ?`,
    [withinMs, instanceId],
  );
}

/** Takes due probes for this process; if it dies, they are due again after `leaseMs`. */
export function claimDueProbes(db: Db, limit: number, leaseMs: number): Promise<InstanceRow[]> {
  return query<InstanceRow>(db).all(
    `update instance i set next_probe_at = now() + ? * interval '1 millisecond'
     where i.instance_id in (
       select instance_id from instance where next_probe_at <= now()
       order by state = 'down', next_probe_at limit ? for no key update skip locked)
     returning ${instanceColumns}`,
    [leaseMs, limit],
  );
}

/**
 * Deletes instances without a heartbeat for 7 days: evicted, deregistered, or quarantined without heartbeats. Their
 * attempts stay; names left without an instance are free again.
 * @returns how many
 */
export async function purgeInstances(db: Db): Promise<number> {
  const purged = await query(db).written(`delete from instance i
     where (down_since < now() - interval '7 days'
         or state = 'quarantined' and last_heartbeat_at < now() - interval '7 days')
       and not exists (select from attempt a where a.instance_id = i.instance_id
         and a.state in ('reserved', 'dispatched') and a.lease_until > now())`);
  await purgePublishers(db);
  return purged;
}
