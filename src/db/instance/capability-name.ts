/** Capability names: the projects that may share instances of each, and the names that a project knows. */
import type { Db } from '../connect.ts';
import { query } from '../statements.ts';

export interface PublisherRow {
  readonly name: string;
  readonly projects: readonly string[];
  readonly updated_at: Date;
}

export type PublishedName = Pick<PublisherRow, 'projects'> & {
  /** The operator's key that assigned the name; null: the first registration did. */
  readonly set_by: string | null;
};

/** The first project to claim an unused name gets it. @returns the projects that may share instances of the name */
export async function claimName(trx: Db, name: string, projectId: string): Promise<PublishedName> {
  await trx.raw('insert into publisher (name, projects) values (?, array[?]) on conflict (name) do nothing', [
    name,
    projectId,
  ]);
  return query<PublishedName>(trx).one('select projects, set_by from publisher where name = ? for share', [
    name,
  ]);
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

/** Ends the sharing of the instances of a name that other projects than `projects` have registered, and vets them again. */
export async function unshareForeignInstances(
  trx: Db,
  name: string,
  projects: readonly string[],
): Promise<void> {
  await trx.raw(
    `update instance set shared_with = '[]', spec_digest = null where instance_id in (
       select instance_id from instance where name = ? and owner_project <> all(?::text[])
       order by instance_id for no key update)`,
    [name, [...projects]],
  );
}

/** Deletes names without an instance that no operator has assigned; the next project to claim one gets it. */
export async function purgePublishers(db: Db): Promise<void> {
  await db.raw(
    `delete from publisher p where set_by is null and not exists (select from instance i where i.name = p.name)`,
  );
}

/** Lists the names of all instances that serve the project and are not deregistered. */
export async function listCapabilityNames(db: Db, projectId: string): Promise<ReadonlySet<string>> {
  const rows = await query<{ name: string }>(db).all(
    `select distinct i.name from instance i where i.state <> 'deregistered' and serves(i.owner_project, i.shared_with, ?)`,
    [projectId],
  );
  return new Set(rows.map(({ name }) => name));
}

/** A name as a project knows it: by the instances that serve the project. */
export interface NameInProject {
  readonly projectId: string;
  readonly name: string;
}

/** Whether the name has an instance, even a deregistered one; instances are deleted after 7 days. */
export async function isCapabilityName(db: Db, { projectId, name }: NameInProject): Promise<boolean> {
  const row = await query<{ known: boolean }>(db).one(
    `select exists (select 1 from instance i where i.name = ? and serves(i.owner_project, i.shared_with, ?)) as known`,
    [name, projectId],
  );
  return row.known;
}

/** Whether an instance of the name is registered now, up or not. */
export async function isRegistered(db: Db, { projectId, name }: NameInProject): Promise<boolean> {
  const row = await query<{ known: boolean }>(db).one(
    `select exists (select 1 from instance i where i.name = ? and i.state <> 'deregistered'
       and serves(i.owner_project, i.shared_with, ?)) as known`,
    [name, projectId],
  );
  return row.known;
}
