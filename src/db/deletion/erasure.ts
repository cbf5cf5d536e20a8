/**
 * Erasures of projects: requested, in progress, ended; the number of rows that an erasure would delete or has left; and
 * the ties between keys, people and a project that is erased. A key without other projects is deleted with it; a person
 * never is.
 */
import type { Db } from '../connect.ts';
import { query, toJsonb } from '../statements.ts';
import type { RowCounts } from './deleted-tables.ts';

export interface ErasureRow {
  readonly pseudonym: string;
  /** Null: the project is deleted. */
  readonly project_id: string | null;
  readonly requested_at: Date;
  readonly finished_at: Date | null;
  readonly attempts_after: string;
  readonly deleted: Readonly<Record<string, number>>;
}

/** An erasure that has not ended. */
export interface OpenErasure extends ErasureRow {
  readonly project_id: string;
}

const columns = 'pseudonym, project_id, requested_at, finished_at, attempts_after, deleted';

export function findErasure(db: Db, projectId: string): Promise<ErasureRow | undefined> {
  return query<ErasureRow>(db).first(
    `select ${columns} from erasure where project_sha256 = sha256(?::text::bytea)`,
    [projectId],
  );
}

export function insertErasure(trx: Db, pseudonym: string, projectId: string): Promise<ErasureRow> {
  return query<ErasureRow>(trx).one(
    `insert into erasure (pseudonym, project_id, project_sha256) values (:pseudonym, :projectId,
       sha256(:projectId::text::bytea)) returning ${columns}`,
    { pseudonym, projectId },
  );
}

/**
 * Waits for transactions that write work of the project; later ones are refused.
 * @returns false if there is no such project
 */
export async function markErasing(trx: Db, projectId: string): Promise<boolean> {
  await trx.raw('select 1 from project where project_id = ? for update', [projectId]);
  return query(trx).wrote(
    'update project set erasing_since = coalesce(erasing_since, clock_timestamp()) where project_id = ?',
    [projectId],
  );
}

/** Oldest first. `is_quiet`: requested at least `quietMs` ago, by the database's clock. */
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

/** Ends the erasure and deletes the row of the project, and so its name. */
export async function finishErasure(trx: Db, { pseudonym, project_id }: OpenErasure): Promise<void> {
  await trx('erasure').where({ pseudonym }).update({ project_id: null, finished_at: trx.fn.now() });
  await trx('project').where({ project_id }).delete();
}

/** Selects the projects that are being erased. */
export async function listErasing(db: Db, projects: readonly string[]): Promise<readonly string[]> {
  return db('project')
    .whereIn('project_id', [...projects])
    .whereNotNull('erasing_since')
    .pluck('project_id');
}

/** Parameter: `projectId`. */
const keysOfProjectAlone = `projects = array[:projectId::text]
  and not exists (select from person p where p.key_id = api_key.key_id)`;

/** Keys with other projects keep those; the others are revoked, and their sessions end. */
export async function untieKeys(
  trx: Db,
  { projectId, pseudonym }: { readonly projectId: string; readonly pseudonym: string },
): Promise<void> {
  const names = { projectId, pseudonym };
  await trx.raw(
    `update api_key set revoked_at = coalesce(revoked_at, now()) where ${keysOfProjectAlone}`,
    names,
  );
  await trx.raw(
    `update api_key set projects = case when cardinality(array_remove(projects, :projectId::text)) = 0
       then array[:pseudonym::text] else array_remove(projects, :projectId::text) end
     where :projectId::text = any (projects) and not (${keysOfProjectAlone})`,
    names,
  );
  await trx.raw(
    `update person set grants = (select coalesce(jsonb_agg(jsonb_set(g, '{projects}', (g -> 'projects') - :projectId::text)),
       '[]') from jsonb_array_elements(grants) g) where strpos(grants::text, :projectId) > 0`,
    names,
  );
  for (const table of ['session', 'login_code'])
    await trx.raw(
      `delete from ${table} where key_id in (select key_id from api_key where ${keysOfProjectAlone})`,
      names,
    );
}

/** Lists the keys that are deleted with the project. */
export async function listKeysOfProject(db: Db, projectId: string): Promise<readonly string[]> {
  const rows = await query<{ key_id: string }>(db).all(
    `select key_id from api_key where ${keysOfProjectAlone}`,
    { projectId },
  );
  return rows.map(({ key_id }) => key_id);
}

export async function deleteKeys(trx: Db, keyIds: readonly string[]): Promise<number> {
  const ids = [...keyIds];
  for (const table of ['session', 'login_code']) await trx(table).whereIn('key_id', ids).delete();
  await trx('api_key').whereIn('created_by', ids).update({ created_by: null });
  await trx('publisher').whereIn('set_by', ids).update({ set_by: 'erased' });
  await trx('repair_decision').whereIn('decided_by', ids).update({ decided_by: 'erased' });
  for (const table of ['webhook', 'schedule', 'hook', 'backfill'])
    await trx(table).whereIn('created_by', ids).update({ created_by: 'erased' });
  await trx('outside_event').whereIn('sent_by', ids).update({ sent_by: 'erased' });
  return trx('api_key').whereIn('key_id', ids).delete();
}

/** Each count uses an index; each name is explained at `Erasure`. */
const counted: Readonly<Record<string, string>> = {
  run: 'project_id = :projectId',
  open_run: 'project_id = :projectId and finished_at is null',
  job: 'project_id = :projectId',
  media_object: `project_id = :projectId and state = 'stored'`,
  schedule: 'project_id = :projectId and deleted_at is null',
  webhook: 'project_id = :projectId',
  hook: 'project_id = :projectId',
  review: `project_id = :projectId and state in ('open', 'claimed')`,
  escalation: 'project_id = :projectId',
  skill: 'project_id = :projectId',
  cached_result: 'project_id = :projectId',
  pipeline_version: 'project_id = :projectId',
  instance: 'owner_project = :projectId',
  api_key: keysOfProjectAlone,
};

const tableOf: Readonly<Record<string, string>> = { open_run: 'run' };

const countColumns = Object.entries(counted)
  .map(([name, where]) => {
    const rows = `select 1 from ${tableOf[name] ?? name} where ${where} limit :most`;
    return `(select count(*)::int from (${rows}) t) as ${name}`;
  })
  .join(', ');

/** Counts rows by table, and `open_run`, each up to `most`. Zero counts are left out. */
export async function countLeft(db: Db, projectId: string, most: number): Promise<RowCounts> {
  const row = await query<RowCounts>(db).one(`select ${countColumns}`, { projectId, most });
  return Object.fromEntries(Object.entries(row).filter(([, count]) => count > 0));
}
