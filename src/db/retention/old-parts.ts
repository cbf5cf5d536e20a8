/** Parts of tables that hold nothing any more that has to be kept: dropped as a whole (db/parts/keep-parts.ts). */
import type { Db } from '../connect.ts';
import { listParts } from '../parts/keep-parts.ts';
import type { PartedTable, TablePart } from '../parts/table-parts.ts';

export async function listOldParts(db: Db, table: PartedTable, before: Date): Promise<readonly TablePart[]> {
  return (await listParts(db, table)).filter(({ endsAt }) => endsAt < before);
}

export async function countPart(db: Db, { name }: TablePart): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ count: number }] }>('select count(*)::int as count from ??', [
    name,
  ]);
  return rows[0].count;
}

async function isSo(db: Db, question: string, bindings: object): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ answer: boolean }] }>(`select ${question} as answer`, {
    ...bindings,
  });
  return rows[0].answer;
}

/** Whether a run that has not ended has made one of the choices in it. */
export function hasOpenChoices(db: Db, { from, to }: TablePart): Promise<boolean> {
  return isSo(
    db,
    `exists (select from run r join attempt a using (run_id)
       where r.finished_at is null and a.attempt_id >= :from and a.attempt_id < :to)`,
    { from, to },
  );
}

/** Whether one of its runs is still there. */
export function hasRuns(db: Db, { from, to }: TablePart): Promise<boolean> {
  return isSo(db, 'exists (select from run where run_id >= :from and run_id < :to)', { from, to });
}

export interface ChoiceBatch {
  readonly after: string;
  /** Choices of attempts that were made later than this are not looked at. */
  readonly upTo: string;
  readonly limit: number;
  readonly isTrial: boolean;
}

/** One by one, where a part cannot go: those of open runs stay. @returns as of other rows, place null at the end */
export async function purgeChoices(
  db: Db,
  { after, upTo, limit, isTrial }: ChoiceBatch,
): Promise<{ readonly deleted: number; readonly place: string | null }> {
  const gone = isTrial
    ? 'select 1 from old'
    : 'delete from attempt_choice c using old o where c.attempt_id = o.attempt_id returning 1';
  const { rows } = await db.raw<{ rows: [{ deleted: number; place: string | null }] }>(
    `with seen as materialized (
       select attempt_id from attempt_choice where attempt_id > :after and attempt_id < :upTo
       order by attempt_id limit :limit
     ), old as materialized (
       select s.attempt_id from seen s left join attempt a using (attempt_id) left join run r using (run_id)
       where r.run_id is null or r.finished_at is not null
     ), gone as (${gone})
     select (select count(*)::int from gone) as deleted,
       (select case when count(*) = :limit then max(attempt_id) end from seen) as place`,
    { after, upTo, limit },
  );
  return rows[0];
}
