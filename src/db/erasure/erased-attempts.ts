/** Calls of a project that is being erased: functions/erase-attempts.sql.ts. */
import type { Db } from '../connect.ts';
import { leastId } from '../parts/table-parts.ts';

export interface ErasedProject {
  readonly project_id: string;
  readonly pseudonym: string;
}

/** @returns how many went; those that stay are nobody's any more */
export async function eraseAttempts(
  trx: Db,
  { project_id, pseudonym }: ErasedProject,
  attemptIds: readonly string[],
): Promise<number> {
  const { rows } = await trx.raw<{ rows: [{ deleted: number }] }>(
    'select erase_attempts(?, ?, ?) as deleted',
    [...[project_id, pseudonym, [...attemptIds]]],
  );
  return rows[0].deleted;
}

export interface AttemptPage {
  readonly own: readonly string[];
  /** The last that was looked at; null: there are no more. */
  readonly place: string | null;
  /** One is open, or ended so lately that the next may follow: it is looked at again. */
  readonly is_blocked: boolean;
}

/** Attempts have no order by project: all are looked at, once. */
export async function pageAttempts(
  db: Db,
  {
    project_id,
    after,
    limit,
    quietMs,
  }: { project_id: string; after: string; limit: number; quietMs: number },
): Promise<AttemptPage> {
  const { rows } = await db.raw<{ rows: [AttemptPage] }>(
    `with page as materialized (
       select attempt_id, project_id = :project_id as is_own, project_id = :project_id and (
         finished_at is null or finished_at > clock_timestamp() - :quietMs * interval '1 millisecond') as is_going
       from attempt where attempt_id > :after order by attempt_id limit :limit
     ), stop as (select min(attempt_id) as at from page where is_going)
     select array(select attempt_id from page, stop where is_own and (at is null or attempt_id < at)) as own,
       (select max(attempt_id) from page, stop where at is null or attempt_id < at) as place,
       (select at is not null from stop) as is_blocked`,
    { project_id, after, limit, quietMs },
  );
  return rows[0];
}

/** Clocks of servers, which give out the ids, may differ. */
const skewMs = 600_000;

/**
 * Calls that were written after their place had been looked at: made by whoever was still trusted, all of them after the
 * erasure was asked for.
 * @returns the place before them; null: there are none
 */
export async function findLatePlace(
  db: Db,
  { project_id, requested_at }: { readonly project_id: string; readonly requested_at: Date },
): Promise<string | null> {
  const place = leastId('att', new Date(requested_at.getTime() - skewMs));
  const { rows } = await db.raw<{ rows: unknown[] }>(
    'select 1 from attempt where attempt_id > ? and project_id = ? limit 1',
    [place, project_id],
  );
  return rows.length > 0 ? place : null;
}
