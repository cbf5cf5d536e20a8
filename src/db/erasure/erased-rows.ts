/** Rows of a project that is being erased, in batches. What is named here belongs to nothing else. */
import type { Db } from '../connect.ts';
import type { RowCounts } from '../retention/run-parts.ts';
import type { ErasedProject } from './erased-attempts.ts';
import { endSchedules } from './erased-schedules.ts';

/** Nobody is asked and nothing is called or started any more; runs are ended by themselves. */
export async function stopWork(db: Db, projectId: string): Promise<void> {
  const names = { projectId };
  await db.raw(
    `update instance set state = 'deregistered', reason = 'its project is erased',
       down_since = coalesce(down_since, now()) where owner_project = :projectId and state <> 'deregistered'`,
    names,
  );
  await endSchedules(db, projectId);
  await db.raw('delete from webhook where project_id = :projectId', names);
  await db.raw(
    `update escalation set state = 'cancelled', finished_at = clock_timestamp()
     where project_id = :projectId and run_id is null and state in ('running', 'in_review')`,
    names,
  );
}

/** In the order in which they can go; those with `project_id`. */
const plain = ['review', 'advice_answer', 'idempotency', 'cached_result', 'pipeline_alias'] as const;
export type PlainTable = (typeof plain)[number] | 'skill' | 'skill_use' | 'instance';
export const plainTables: readonly PlainTable[] = [...plain, 'skill_use'];

const owned: Partial<Record<PlainTable, string>> = {
  skill_use: 'skill_id in (select skill_id from skill where project_id = :projectId)',
  instance: `owner_project = :projectId and not exists (select from attempt a
    where a.instance_id = instance.instance_id and a.state in ('reserved', 'dispatched'))`,
};

export async function deletePlain(
  db: Db,
  table: PlainTable,
  { projectId, limit }: { readonly projectId: string; readonly limit: number },
): Promise<number> {
  const where = owned[table] ?? 'project_id = :projectId';
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `delete from ${table} where ctid = any (array(select ctid from ${table} where ${where} limit :limit))`,
    { projectId, limit },
  );
  return rowCount;
}

/** One may be in the middle of a call of another project. */
export async function hasInstances(db: Db, projectId: string): Promise<boolean> {
  return (await db('instance').where({ owner_project: projectId }).first('instance_id')) !== undefined;
}

/** @param ms an upload past us that was announced so lately may still come */
export async function listErasableJobs(
  db: Db,
  projectId: string,
  { ms, limit }: { readonly ms: number; readonly limit: number },
): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { job_id: string }[] }>(
    `select job_id from job j where project_id = :projectId and (:ms = 0 or not exists (
       select from media_object o where o.job_id = j.job_id and o.state = 'announced' and o.upload_id is null
         and o.created_at > now() - :ms * interval '1 millisecond')) limit :limit`,
    { projectId, ms, limit },
  );
  return rows.map(({ job_id }) => job_id);
}

export type ErasedBook = 'ledger_entry' | 'skill_version' | 'audit';

/** functions/erase-project.sql.ts @returns null when there are no more */
export async function eraseBook(
  db: Db,
  book: ErasedBook,
  page: ErasedProject & { readonly keys: readonly string[]; readonly after: string; readonly most: number },
): Promise<string | null> {
  const { project_id, pseudonym, keys, after, most } = page;
  const { rows } = await db.raw<{ rows: [{ place: string | null }] }>(
    'select erase_project(?, ?, ?, ?, ?, ?) as place',
    [book, project_id, pseudonym, [...keys], after, most],
  );
  return rows[0].place;
}

/** What is the project's by its name only. A spec stays that a run of another project is under way with. */
export async function eraseNames(trx: Db, projectId: string): Promise<RowCounts> {
  const names = { projectId };
  const remove = async (statement: string): Promise<number> => {
    const { rowCount } = await trx.raw<{ rowCount: number }>(statement, names);
    return rowCount;
  };
  await remove(`delete from budget where scope = 'project:' || :projectId
    or scope >= 'capability:' || :projectId || ':' and scope < 'capability:' || :projectId || ';'`);
  const capability_spec = await remove(
    `delete from capability_spec s using publisher p where p.name = s.name and p.projects = array[:projectId::text]
       and not exists (select from run r where r.finished_at is null and jsonb_exists(r.specs, s.name))`,
  );
  await remove('delete from publisher where projects = array[:projectId::text]');
  await remove(`update publisher set projects = array_remove(projects, :projectId::text)
    where :projectId::text = any (projects)`);
  return { capability_spec };
}
