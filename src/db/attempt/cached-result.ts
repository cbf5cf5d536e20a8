/**
 * Cached results: the call that each answers, and the leader of a call that others wait for. A leader proves that it is
 * alive by its open attempt, or by an attempt or a start within the last seconds. The next caller replaces a leader
 * without such proof.
 */

import type { CacheRemoval } from '@capstan/core/contracts/cache';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Db } from '../connect.ts';
import { query, runPrepared } from '../statements.ts';
import type { StepKey } from './attempt.ts';

export interface CacheKey {
  readonly project_id: string;
  /** SHA-256, hex. */
  readonly key: string;
}

/** How long a leader counts as alive before its first attempt, and between two. */
const quietSeconds = 10;

/** Whether `cached_result c` has a live leader. */
const isLed = `greatest(c.led_at, (select max(coalesce(a.finished_at, a.lease_until)) from attempt a
    where a.key = c.run_id || '.' || c.step_id || '.' || c.item || '.0'))
  > clock_timestamp() - interval '${quietSeconds} seconds'`;

export interface CachedResultRow {
  readonly key: string;
  readonly run_id: string;
  readonly step_id: string;
  readonly item: number;
  readonly attempt_id: string;
  readonly instance_id: string;
  readonly endpoint: string;
  readonly cost_nano: string;
  readonly output: Json;
  readonly places: JsonObject;
  readonly files: JsonObject;
}

export interface CacheLookup {
  readonly project_id: string;
  /** A result under any of them is a hit; the first is led. At least one. */
  readonly keys: readonly string[];
  readonly step: StepKey;
  readonly pipeline: string;
  readonly capability: string;
  readonly ttl_ms: number;
}

type CacheFind =
  | { readonly kind: 'hit'; readonly result: CachedResultRow }
  /** The caller becomes the leader and makes the call. */
  | { readonly kind: 'lead' }
  | { readonly kind: 'follow' };

/** Decodes a parameter of hex keys. */
function bytes(keys: string): string {
  return `array(select decode(k, 'hex') from unnest(${keys}::text[]) k)`;
}

const fresh = `select encode(c.key, 'hex') as key, c.run_id, c.step_id, c.item, c.attempt_id, c.places, c.files,
     s.output, a.instance_id, a.endpoint, coalesce(a.settled_nano, 0)::text as cost_nano
   from clock, cached_result c
   join step s on s.run_id = c.run_id and s.step_id = c.step_id and s.item = c.item
   join attempt a on a.attempt_id = c.attempt_id
   where c.project_id = $1 and c.key = any (${bytes('$2')}) and c.expires_at > now
     and c.stored_at > now - $3::float8 * interval '1 millisecond' and s.state = 'succeeded'
   order by c.stored_at desc limit 1`;

const lookUp = `with clock as materialized (select clock_timestamp() as now), known as (${fresh}), led as (
   insert into cached_result as c (project_id, key, run_id, step_id, item, pipeline, capability, led_at, expires_at)
   select $1, decode($2[1], 'hex'), $4, $5, $6, $7, $8, now, now + $3::float8 * interval '1 millisecond'
   from clock where not exists (select 1 from known)
   on conflict (project_id, key) do update set run_id = excluded.run_id, step_id = excluded.step_id,
     item = excluded.item, pipeline = excluded.pipeline, capability = excluded.capability, led_at = excluded.led_at,
     expires_at = excluded.expires_at, attempt_id = null, places = null, files = null, stored_at = null
   where case when c.stored_at is null
     then (c.run_id, c.step_id, c.item) = (excluded.run_id, excluded.step_id, excluded.item) or not (${isLed})
     else c.expires_at <= excluded.led_at
       or c.stored_at <= excluded.led_at - $3::float8 * interval '1 millisecond' end
   returning 1
 )
 select true as is_hit, known.* from known
 union all
 select false, null, null, null, null, null, null, null, null, null, null, null from led`;

/** In one statement, takes the result of an equal call, or becomes the leader if there is none. */
export async function lookUpResult(db: Db, lookup: CacheLookup): Promise<CacheFind> {
  const { project_id, keys, step, pipeline, capability, ttl_ms } = lookup;
  const { rows } = await runPrepared<CachedResultRow & { is_hit: boolean }>(db, {
    name: 'look_up_result',
    text: lookUp,
    values: [project_id, keys, ttl_ms, step.run_id, step.step_id, step.item, pipeline, capability],
  });
  const [row] = rows;
  if (row === undefined) return { kind: 'follow' };
  return row.is_hit ? { kind: 'hit', result: row } : { kind: 'lead' };
}

/** Reads a result without becoming the leader, for a plan. */
export async function readResult(
  db: Db,
  { project_id, keys, ttl_ms }: Pick<CacheLookup, 'project_id' | 'keys' | 'ttl_ms'>,
): Promise<CachedResultRow | undefined> {
  const { rows } = await runPrepared<CachedResultRow>(db, {
    name: 'read_result',
    text: `with clock as materialized (select clock_timestamp() as now) ${fresh}`,
    values: [project_id, keys, ttl_ms],
  });
  return rows[0];
}

/** Lists the awaited keys whose wait is over: there is a result, or no live leader. */
export function listDecidedKeys(db: Db, waited: readonly CacheKey[]): Promise<readonly CacheKey[]> {
  return query<CacheKey>(db).all(
    `select w.project_id, w.key from unnest(?::text[], ?::text[]) w (project_id, key)
     left join cached_result c on c.project_id = w.project_id and c.key = decode(w.key, 'hex')
     where c.key is null or c.stored_at is not null or not (${isLed})`,
    [waited.map(({ project_id }) => project_id), waited.map(({ key }) => key)],
  );
}

interface NewResult extends Omit<CacheLookup, 'keys'> {
  /** The key that was led. */
  readonly led_key: string;
  /** The key of the call as the answering instance would compute it. */
  readonly key: string;
  readonly attempt_id: string;
  readonly places: JsonObject;
  readonly files: JsonObject;
  /** Stores only results from instances of the project itself. */
  readonly is_of_own_alone?: boolean;
}

/**
 * The row informs the leader of this key. A result of a leader that was believed dead is stored too.
 *
 * @returns false if only results of own instances are stored, and another project's instance answered
 */
export async function storeResult(db: Db, result: NewResult): Promise<boolean> {
  const { project_id, step, ttl_ms, led_key, key, ...rest } = result;
  const { rows } = await runPrepared(db, {
    name: 'store_result',
    text: `with clock as materialized (select clock_timestamp() as now), left_over as (
       delete from cached_result where project_id = $1 and key = decode($3, 'hex') and $3 <> $2
         and run_id = $4 and step_id = $5 and item = $6 and stored_at is null
     )
     insert into cached_result (project_id, key, run_id, step_id, item, pipeline, capability, attempt_id, places,
       files, led_at, stored_at, expires_at)
     select $1, decode($2, 'hex'), $4, $5, $6, $7, $8, $9, $10, $11, now, now,
       now + $12::float8 * interval '1 millisecond' from clock
     where not $13::boolean or exists (select from attempt a join instance i using (instance_id)
       where a.attempt_id = $9 and i.owner_project = $1)
     on conflict (project_id, key) do update set run_id = excluded.run_id, step_id = excluded.step_id,
       item = excluded.item, pipeline = excluded.pipeline, capability = excluded.capability,
       attempt_id = excluded.attempt_id, places = excluded.places, files = excluded.files,
       led_at = excluded.led_at, stored_at = excluded.stored_at, expires_at = excluded.expires_at
     returning 1`,
    values: [
      ...[project_id, key, led_key, step.run_id, step.step_id, step.item, rest.pipeline, rest.capability],
      ...[rest.attempt_id, JSON.stringify(rest.places), JSON.stringify(rest.files), ttl_ms],
      rest.is_of_own_alone ?? false,
    ],
  });
  return rows.length === 1;
}

/** The leader has no result: another caller can become the leader. */
export async function releaseLead(
  db: Db,
  { project_id, key }: CacheKey,
  { run_id, step_id, item }: StepKey,
): Promise<void> {
  await db.raw(
    `delete from cached_result where project_id = ? and key = decode(?, 'hex') and run_id = ? and step_id = ?
       and item = ? and stored_at is null`,
    [project_id, key, run_id, step_id, item],
  );
}

/** Deletes a result whose files are missing or changed. A newer result stays. */
export async function dropResult(db: Db, { project_id, key }: CacheKey, attemptId: string): Promise<void> {
  await db.raw(
    `delete from cached_result where project_id = ? and key = decode(?, 'hex') and attempt_id = ?`,
    [project_id, key, attemptId],
  );
}

// Stored results, for people; calls in flight are not listed.

export interface ListedResultRow {
  /** Hex. */
  readonly key: string;
  readonly capability: string;
  readonly pipeline: string;
  readonly run_id: string;
  readonly step_id: string;
  readonly item: number;
  /** bigint as text */
  readonly cost_nano: string;
  readonly files: number;
  readonly stored_at: Date;
  /** Exact time as text, for pages. */
  readonly place: string;
  readonly expires_at: Date;
}

/** The last result of the previous page. */
export type ResultPlace = Pick<ListedResultRow, 'place' | 'key'>;

type ResultFilter = Omit<CacheRemoval, 'key'> & {
  readonly after: ResultPlace | null;
  readonly limit: number;
};

type Which = Partial<Record<keyof CacheRemoval, string | undefined>>;

function conditionsOf({ key, capability, pipeline, run_id }: Which): string {
  return [
    'c.project_id = :projectId and c.stored_at is not null',
    ...(key === undefined ? [] : [`c.key = decode(:key, 'hex')`]),
    ...(capability === undefined ? [] : ['c.capability = :capability']),
    ...(pipeline === undefined ? [] : ['c.pipeline = :pipeline']),
    ...(run_id === undefined ? [] : ['c.run_id = :run_id']),
  ].join(' and ');
}

/** Newest first, without expired ones. */
export function listResults(
  db: Db,
  projectId: string,
  { after, limit, ...which }: ResultFilter,
): Promise<readonly ListedResultRow[]> {
  const next =
    after === null ? '' : `and (c.stored_at, c.key) < (cast(:place as timestamptz), decode(:lastKey, 'hex'))`;
  return query<ListedResultRow>(db).all(
    `select encode(c.key, 'hex') as key, c.capability, c.pipeline, c.run_id, c.step_id, c.item, c.stored_at,
       c.stored_at::text as place, c.expires_at, coalesce(a.settled_nano, 0)::text as cost_nano,
       (select count(*)::int from json_object_keys(c.files)) as files
     from cached_result c left join attempt a using (attempt_id)
     where ${conditionsOf(which)} and c.expires_at > now() ${next}
     order by c.stored_at desc, c.key desc limit :limit`,
    { projectId, ...which, place: after?.place, lastKey: after?.key, limit },
  );
}

/** @returns how many */
export function removeResults(db: Db, projectId: string, which: CacheRemoval): Promise<number> {
  return query(db).written(`delete from cached_result c where ${conditionsOf(which)}`, {
    projectId,
    ...which,
  });
}

export interface CachedOfCapabilityRow {
  readonly capability: string;
  readonly results: number;
  readonly answers: number;
  /** bigint as text */
  readonly answer_bytes: string;
  readonly stored_at: Date | null;
  readonly hits: number;
  /** bigint as text */
  readonly saved_nano: string;
}

/** By name, the first 1,000, with the hits of the last 30 days. */
export function summarizeCache(db: Db, projectId: string): Promise<readonly CachedOfCapabilityRow[]> {
  return query<CachedOfCapabilityRow>(db).all(
    `select capability, sum(results)::int as results, sum(answers)::int as answers,
       sum(answer_bytes)::text as answer_bytes, max(stored_at) as stored_at, sum(hits)::int as hits,
       sum(saved_nano)::text as saved_nano
     from (
       select capability, count(*) as results, 0 as answers, 0 as answer_bytes, max(stored_at) as stored_at,
         0 as hits, 0 as saved_nano
       from cached_result where project_id = :projectId and stored_at is not null and expires_at > now() group by 1
       union all
       select capability, 0, count(*), sum(pg_column_size(output)), max(stored_at), 0, 0
       from cached_answer where project_id = :projectId and expires_at > now() group by 1
       union all
       select capability, 0, 0, 0, null, count(*), coalesce(sum(saved_nano), 0)
       from attempt where project_id = :projectId and state = 'cached'
         and started_at >= now() - interval '30 days' group by 1
     ) parts group by 1 order by 1 limit 1000`,
    { projectId },
  );
}

const batch = 1_000;

/** Deletes expired results and abandoned calls. @returns how many */
export async function purgeResults(db: Db): Promise<number> {
  let purged = 0;
  for (;;) {
    const rowCount = await query(db).written(
      `delete from cached_result where ctid = any (array(
         select ctid from cached_result where expires_at < now() order by expires_at limit ?))`,
      [batch],
    );
    purged += rowCount;
    if (rowCount < batch) return purged;
  }
}
