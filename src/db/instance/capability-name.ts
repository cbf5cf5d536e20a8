/** Capability names: the projects that may register instances under each, and the known names. */
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface PublisherRow {
  readonly name: string;
  readonly projects: readonly string[];
  readonly updated_at: Date;
}

/** The first project to claim an unused name gets it. @returns the projects that may use the name */
export async function claimName(trx: Db, name: string, projectId: string): Promise<readonly string[]> {
  await trx.raw('insert into publisher (name, projects) values (?, array[?]) on conflict (name) do nothing', [
    name,
    projectId,
  ]);
  const row = await query<PublisherRow>(trx).first(
    'select projects from publisher where name = ? for share',
    [name],
  );
  return row?.projects ?? [];
}

export function setPublishers(
  trx: Db,
  {
    name,
    projects,
    by,
  }: { readonly name: string; readonly projects: readonly string[]; readonly by: string },
): Promise<PublisherRow> {
  return query<PublisherRow>(trx).one(
    `insert into publisher (name, projects, set_by) values (?, ?, ?)
     on conflict (name) do update set projects = excluded.projects, set_by = excluded.set_by,
       updated_at = clock_timestamp()
     returning name, projects, updated_at`,
    [name, [...projects], by],
  );
}

/** By name. */
export function listPublishers(
  db: Db,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly PublisherRow[]> {
  return query<PublisherRow>(db).all(
    `select name, projects, updated_at from publisher where name > coalesce(?, '') collate "C"
     order by name collate "C" limit ?`,
    [after, limit],
  );
}

/**
 * Locks, until the transaction ends, the instances of a name that other projects than `projects` registered.
 * @returns them
 */
export function lockForeignInstances(
  trx: Db,
  name: string,
  projects: readonly string[],
): Promise<readonly { readonly instance_id: string }[]> {
  return query<{ instance_id: string }>(trx).all(
    `select instance_id from instance where name = ? and owner_project <> all(?::text[])
       and state <> 'deregistered' order by instance_id for no key update`,
    [name, [...projects]],
  );
}

/** Deletes names without an instance that no operator has assigned; the next project to claim one gets it. */
export async function purgePublishers(db: Db): Promise<void> {
  await db.raw(
    `delete from publisher p where set_by is null and not exists (select from instance i where i.name = p.name)`,
  );
}

/** Lists the names of all instances that are not deregistered, in all projects. */
export async function listCapabilityNames(db: Db): Promise<ReadonlySet<string>> {
  const rows = await query<{ name: string }>(db).all(
    `select distinct name from instance where state <> 'deregistered'`,
  );
  return new Set(rows.map(({ name }) => name));
}

/** Whether the name has an instance, even a deregistered one; instances are deleted after 7 days. */
export async function isCapabilityName(db: Db, name: string): Promise<boolean> {
  const row = await query<{ known: boolean }>(db).one(
    'select exists (select 1 from instance where name = ?) as known',
    [name],
  );
  return row.known;
}

/** Whether an instance of the name is registered now, up or not. */
export async function isRegistered(db: Db, name: string): Promise<boolean> {
  const row = await query<{ known: boolean }>(db).one(
    `select exists (select 1 from instance where name = ? and state <> 'deregistered') as known`,
    [name],
  );
  return row.known;
}
