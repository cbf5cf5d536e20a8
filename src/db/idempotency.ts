/**
 * Responses kept under an Idempotency-Key, by the transaction that does the work or by a holder that works outside of
 * one; and advice, which is kept the same way. If a transaction writes the row with its work, a response survives a
 * crash, and the second of two equal concurrent requests waits for the first.
 */
import { keptAnswerHours } from '@capstan/core/contracts/limits';
import type { Json } from '@capstan/core/contracts/primitives';
import type { Db } from './connect.ts';
import { purgeOld, query, toJson } from './statements.ts';

export interface IdempotentRequest {
  readonly project_id: string;
  /** Method and path of the request. */
  readonly request: string;
  readonly key: string;
  readonly body_sha256: Buffer;
}

/** @returns false if the key is in use; nothing was written */
export function insertAnswer(
  db: Db,
  { project_id, request, key, body_sha256 }: IdempotentRequest,
  { status, answer }: { readonly status: number; readonly answer: Json },
): Promise<boolean> {
  return query(db).wrote(
    `insert into idempotency (project_id, request, key, body_sha256, status, answer)
     values (?, ?, ?, ?, ?, ?) on conflict do nothing`,
    [project_id, request, key, body_sha256, status, toJson(answer)],
  );
}

/** Deletes responses after `keptAnswerHours`. @returns how many */
export function purgeAnswers(db: Db): Promise<number> {
  return purgeOld(db, { table: 'idempotency', hours: keptAnswerHours });
}

// Idempotency-Keys of work in flight outside of a transaction: rows with status 0 whose answer names the holder. A
// holder renews its rows. A row that is 10 s old and has no open attempt has lost its process, and the same request may
// take it over. The former holder can then neither answer nor release it.

export interface KeyHold extends Omit<IdempotentRequest, 'body_sha256'> {
  /** Unique for each hold. */
  readonly holder: string;
}

/** The key under which a response is stored, together with other writes. */
export interface KeptPlace extends KeyHold {
  readonly status: number;
}

/** Stored by the statement that settles a call: `keep_answers` (sql/attempts.sql). */
export interface KeptAnswer {
  readonly place: KeptPlace;
  readonly answer: Json;
}

export interface KeyRow {
  readonly body_sha256: Buffer;
  /** 0 = in flight. */
  readonly status: number;
  readonly answer: Json;
}

const underWay = 0;
const ofHolder = `project_id = ? and request = ? and key = ? and status = ${underWay} and answer::text = ?`;

function holderBindings({ project_id, request, key, holder }: KeyHold): string[] {
  return [project_id, request, key, toJson(holder)];
}

/** @returns false if the key is in use */
export function holdKey(db: Db, hold: KeyHold, body_sha256: Buffer): Promise<boolean> {
  return insertAnswer(db, { body_sha256, ...hold }, { status: underWay, answer: hold.holder });
}

export function findKey(
  db: Db,
  { project_id, request, key }: Omit<IdempotentRequest, 'body_sha256'>,
): Promise<KeyRow | undefined> {
  return db('idempotency').where({ project_id, request, key }).first('body_sha256', 'status', 'answer');
}

/** @param attemptKey of the request's attempts @returns false if the holder is alive */
export function takeOverKey(db: Db, hold: KeyHold, attemptKey: string): Promise<boolean> {
  return query(db).wrote(
    `update idempotency set answer = ?, created_at = clock_timestamp()
     where project_id = ? and request = ? and key = ? and status = ${underWay}
       and created_at < clock_timestamp() - interval '10 seconds'
       and not exists (select 1 from attempt a where a.key = ?
         and a.state in ('reserved', 'dispatched') and a.lease_until > clock_timestamp())`,
    [toJson(hold.holder), hold.project_id, hold.request, hold.key, attemptKey],
  );
}

/** @returns the holders that still own their rows */
export async function renewKeys(db: Db, holds: readonly KeyHold[]): Promise<ReadonlySet<string>> {
  const rows = await query<{ holder: string }>(db).all(
    `with held as (
       select i.project_id, i.request, i.key, h.holder
       from unnest(?::text[], ?::text[], ?::text[], ?::text[]) as h (project_id, request, key, holder)
       join idempotency i on i.project_id = h.project_id and i.request = h.request and i.key = h.key
         and i.status = ${underWay} and i.answer #>> '{}' = h.holder
       order by i.project_id, i.request, i.key for update of i
     )
     update idempotency i set created_at = clock_timestamp() from held
     where i.project_id = held.project_id and i.request = held.request and i.key = held.key
     returning held.holder`,
    [
      holds.map(({ project_id }) => project_id),
      holds.map(({ request }) => request),
      holds.map(({ key }) => key),
      holds.map(({ holder }) => holder),
    ],
  );
  return new Set(rows.map(({ holder }) => holder));
}

/** Stores the response for 24 h from now. A repetition changes nothing. */
export async function answerKey(db: Db, { place, answer }: KeptAnswer): Promise<void> {
  await db.raw(
    `update idempotency set status = ?, answer = ?, created_at = clock_timestamp() where ${ofHolder}`,
    [place.status, toJson(answer), ...holderBindings(place)],
  );
}

/** The status in place of an answer that was too large or too old to be kept, so that its call is not made again. */
const notKeptStatus = 410;

/**
 * Replaces the oldest answers of a project's calls beyond a sum of bytes by one that reports that. Their keys stay, so
 * that no call is paid twice.
 *
 * @param stated what a repeated request is answered
 * @returns how many
 */
export function trimKeptAnswers(
  db: Db,
  projectId: string,
  { bytes, stated }: { readonly bytes: number; readonly stated: Json },
): Promise<number> {
  return query(db).written(
    `update idempotency set status = ${notKeptStatus}, answer = cast(:stated as json) where ctid = any (array(
       select i.ctid from idempotency i join (
         select request, key, sum(pg_column_size(answer) + 200) over (order by created_at desc, request, key) as sum
         from idempotency where project_id = :projectId and status <> ${underWay}
       ) sized using (request, key)
       where i.project_id = :projectId and i.status = 200 and sized.sum > :bytes
         and i.request like 'POST /v1/capabilities/%/exec'
       for update of i skip locked))`,
    { projectId, bytes, stated: toJson(stated) },
  );
}

/** Deletes the hold, so that the same request can be made again. */
export async function releaseKey(db: Db, hold: KeyHold): Promise<void> {
  await db.raw(`delete from idempotency where ${ofHolder}`, holderBindings(hold));
}

interface AdviceKey {
  readonly project_id: string;
  readonly request_sha256: Buffer;
}

/** Finds advice that `/execute` has given: a following `/advise` returns the same and is not charged again. */
export async function findAdviceAnswer(db: Db, key: AdviceKey): Promise<Json | undefined> {
  const row = await db('advice_answer').where(key).first('answer');
  return row?.answer;
}

/** The first response to a request stays. */
export async function insertAdviceAnswer(db: Db, key: AdviceKey, answer: Json): Promise<void> {
  await db('advice_answer')
    .insert({ ...key, answer: toJson(answer) })
    .onConflict()
    .ignore();
}

/** Deletes responses after 24 hours. @returns how many */
export function purgeAdviceAnswers(db: Db): Promise<number> {
  return purgeOld(db, { table: 'advice_answer', hours: 24 });
}
