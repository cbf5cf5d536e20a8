/** Erasures of projects: asked for, under way, ended. */
import type { Db } from '../connect.ts';
import { toJsonb } from '../jsonb.ts';

export interface ErasureRow {
  readonly pseudonym: string;
  /** Null: it is gone. */
  readonly project_id: string | null;
  readonly requested_at: Date;
  readonly finished_at: Date | null;
  readonly attempts_after: string;
  readonly deleted: Readonly<Record<string, number>>;
}

/** One that has not ended. */
export interface OpenErasure extends ErasureRow {
  readonly project_id: string;
}

const columns = 'pseudonym, project_id, requested_at, finished_at, attempts_after, deleted';

export async function findErasure(db: Db, projectId: string): Promise<ErasureRow | undefined> {
  const { rows } = await db.raw<{ rows: ErasureRow[] }>(
    `select ${columns} from erasure where project_sha256 = sha256(?::text::bytea)`,
    [projectId],
  );
  return rows[0];
}

export async function insertErasure(trx: Db, pseudonym: string, projectId: string): Promise<ErasureRow> {
  const { rows } = await trx.raw<{ rows: [ErasureRow] }>(
    `insert into erasure (pseudonym, project_id, project_sha256) values (:pseudonym, :projectId,
       sha256(:projectId::text::bytea)) returning ${columns}`,
    { pseudonym, projectId },
  );
  return rows[0];
}

/** Waits for work that is being written in it; what comes then is refused. False: there is no such project. */
export async function markErasing(trx: Db, projectId: string): Promise<boolean> {
  await trx.raw('select 1 from project where project_id = ? for update', [projectId]);
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    'update project set erasing_since = coalesce(erasing_since, clock_timestamp()) where project_id = ?',
    [projectId],
  );
  return rowCount > 0;
}

/** Oldest first; those that were asked for so long ago, by the clock of the database, are quiet. */
export async function listOpenErasures(
  db: Db,
  quietMs: number,
): Promise<readonly (OpenErasure & { readonly is_quiet: boolean })[]> {
  const { rows } = await db.raw(
    `select ${columns}, requested_at < clock_timestamp() - ? * interval '1 millisecond' as is_quiet
     from erasure where finished_at is null order by requested_at`,
    [quietMs],
  );
  return rows;
}

export async function saveProgress(
  db: Db,
  { pseudonym, deleted, attempts_after }: Pick<ErasureRow, 'pseudonym' | 'deleted' | 'attempts_after'>,
): Promise<void> {
  await db('erasure')
    .where({ pseudonym })
    .update({ deleted: toJsonb({ ...deleted }), attempts_after });
}

/** The last of it: keys, the project and its name. */
export async function finishErasure(trx: Db, { pseudonym, project_id }: OpenErasure): Promise<void> {
  await trx('erasure').where({ pseudonym }).update({ project_id: null, finished_at: trx.fn.now() });
  await trx('project').where({ project_id }).delete();
}

/** Of these projects. */
export async function listErasing(db: Db, projects: readonly string[]): Promise<readonly string[]> {
  return db('project')
    .whereIn('project_id', [...projects])
    .whereNotNull('erasing_since')
    .pluck('project_id');
}
