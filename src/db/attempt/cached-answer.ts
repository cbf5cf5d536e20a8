/**
 * Cached answers of direct calls. Each holds its output, since a direct call has no step that keeps it. A call that
 * takes one gets an attempt in the state `cached`, like a step's.
 */
import type { Decision } from '@capstan/core/contracts/decision';
import type { Json } from '@capstan/core/contracts/primitives';
import type { Db } from '../connect.ts';
import { query, runPrepared, toJson, toJsonb } from '../statements.ts';

export interface CachedAnswerRow {
  readonly attempt_id: string;
  readonly instance_id: string;
  readonly endpoint: string;
  /** bigint as text */
  readonly cost_nano: string;
  readonly output: Json;
}

interface AnswerLookup {
  readonly project_id: string;
  /** SHA-256, hex; an answer under any of them counts. */
  readonly keys: readonly string[];
  readonly ttl_ms: number;
}

/** The newest that is no older than `ttl_ms`. */
export async function findCachedAnswer(
  db: Db,
  { project_id, keys, ttl_ms }: AnswerLookup,
): Promise<CachedAnswerRow | undefined> {
  const { rows } = await runPrepared<CachedAnswerRow>(db, {
    name: 'find_cached_answer',
    text: `select attempt_id, instance_id, endpoint, cost_nano::text as cost_nano, output from cached_answer
       where project_id = $1 and key = any (array(select decode(k, 'hex') from unnest($2::text[]) k))
         and expires_at > clock_timestamp()
         and stored_at > clock_timestamp() - $3::float8 * interval '1 millisecond'
       order by stored_at desc limit 1`,
    values: [project_id, keys, ttl_ms],
  });
  return rows[0];
}

export interface NewCachedAnswer extends CachedAnswerRow {
  readonly project_id: string;
  readonly key: string;
  readonly capability: string;
  readonly ttl_ms: number;
  /** Stores only an answer of an instance that the project itself has registered. */
  readonly is_of_own_alone: boolean;
}

export async function storeCachedAnswer(db: Db, answer: NewCachedAnswer): Promise<void> {
  const { output, ...row } = answer;
  await db.raw(
    `insert into cached_answer (project_id, key, capability, attempt_id, instance_id, endpoint, cost_nano, output,
       stored_at, expires_at)
     select :project_id, decode(:key, 'hex'), :capability, :attempt_id, :instance_id, :endpoint, :cost_nano,
       cast(:text as json), now, now + cast(:ttl_ms as float8) * interval '1 millisecond'
     from (select clock_timestamp() as now) clock
     where not cast(:is_of_own_alone as boolean)
       or exists (select from instance where instance_id = :instance_id and owner_project = :project_id)
     on conflict (project_id, key) do update set attempt_id = excluded.attempt_id,
       instance_id = excluded.instance_id, endpoint = excluded.endpoint, cost_nano = excluded.cost_nano,
       output = excluded.output, stored_at = excluded.stored_at, expires_at = excluded.expires_at`,
    { text: toJson(output), ...row },
  );
}

interface TakenAnswer extends Pick<CachedAnswerRow, 'instance_id' | 'endpoint'> {
  readonly attempt_id: string;
  readonly project_id: string;
  readonly key: string;
  readonly capability: string;
  readonly cached_from: { readonly attempt_id: string; readonly saved_usd: number };
  readonly saved_nano: string;
  readonly duration_ms: number;
  readonly decision: Decision;
  /** Key, user and labels of the call. */
  readonly scopes: readonly string[];
}

/** Records the attempt of a call that took an answer: it cost nothing, and what it saved counts. */
export async function recordTakenAnswer(db: Db, taken: TakenAnswer): Promise<void> {
  await runPrepared(db, {
    name: 'record_taken_answer',
    text: `with made as (
         insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
           lease_until, cost_type, rate_usd, reserved_nano, settled_nano, certainty, cached_from, saved_nano,
           duration_ms, finished_at, scopes)
         values ($1, $2, $3, 1, $4, $5, $6, 'cached', gen_random_uuid(), clock_timestamp(), 'free', 0, 0, 0, 'exact',
           $7, $8, $9, clock_timestamp(), $11)
         returning attempt_id
       )
       insert into attempt_choice (attempt_id, decision) select attempt_id, $10 from made`,
    values: [
      ...[taken.attempt_id, taken.project_id, taken.key, taken.capability, taken.instance_id, taken.endpoint],
      ...[toJsonb({ ...taken.cached_from }), taken.saved_nano, taken.duration_ms],
      toJson(taken.decision),
      taken.scopes,
    ],
  });
}

/** @returns how many */
export function removeCachedAnswers(
  db: Db,
  projectId: string,
  { key, capability }: { readonly key?: string | undefined; readonly capability?: string | undefined },
): Promise<number> {
  return query(db).written(
    `delete from cached_answer where project_id = :projectId
       and (cast(:key as text) is null or key = decode(:key, 'hex'))
       and (cast(:capability as text) is null or capability = :capability)`,
    { projectId, key: key ?? null, capability: capability ?? null },
  );
}

/** Removes the oldest answers of a project beyond a sum of bytes. @returns how many */
export function trimCachedAnswers(db: Db, projectId: string, bytes: number): Promise<number> {
  return query(db).written(
    `delete from cached_answer where ctid = any (array(
       select ctid from (
         select ctid, sum(pg_column_size(output) + 200) over (order by stored_at desc, key) as sum
         from cached_answer where project_id = :projectId
       ) sized where sum > :bytes))`,
    { projectId, bytes },
  );
}

const batch = 1_000;

/** Deletes expired answers. @returns how many */
export async function purgeCachedAnswers(db: Db): Promise<number> {
  let purged = 0;
  for (;;) {
    const rowCount = await query(db).written(
      `delete from cached_answer where ctid = any (array(
         select ctid from cached_answer where expires_at < now() order by expires_at limit ?))`,
      [batch],
    );
    purged += rowCount;
    if (rowCount < batch) return purged;
  }
}
