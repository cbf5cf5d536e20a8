/** Names of capabilities: which projects register instances under one, and which are known. */
import type { Db } from '../connect.ts';

export interface PublisherRow {
  readonly name: string;
  readonly projects: readonly string[];
  readonly updated_at: Date;
}

/** @returns the projects that may; who comes first to a name that nobody has is the one */
export async function claimName(trx: Db, name: string, projectId: string): Promise<readonly string[]> {
  await trx.raw('insert into publisher (name, projects) values (?, array[?]) on conflict (name) do nothing', [
    name,
    projectId,
  ]);
  const { rows } = await trx.raw<{ rows: PublisherRow[] }>(
    'select projects from publisher where name = ? for share',
    [name],
  );
  return rows[0]?.projects ?? [];
}

export async function setPublishers(
  trx: Db,
  {
    name,
    projects,
    by,
  }: { readonly name: string; readonly projects: readonly string[]; readonly by: string },
): Promise<PublisherRow> {
  const { rows } = await trx.raw<{ rows: [PublisherRow] }>(
    `insert into publisher (name, projects, set_by) values (?, ?, ?)
     on conflict (name) do update set projects = excluded.projects, set_by = excluded.set_by,
       updated_at = clock_timestamp()
     returning name, projects, updated_at`,
    [name, [...projects], by],
  );
  return rows[0];
}

/** By name. */
export async function listPublishers(
  db: Db,
  { after, limit }: { readonly after: string | null; readonly limit: number },
): Promise<readonly PublisherRow[]> {
  const { rows } = await db.raw<{ rows: PublisherRow[] }>(
    `select name, projects, updated_at from publisher where name > coalesce(?, '') collate "C"
     order by name collate "C" limit ?`,
    [after, limit],
  );
  return rows;
}

/** Locked until the transaction ends. @returns those of a name that projects outside of `projects` registered */
export async function lockForeignInstances(
  trx: Db,
  name: string,
  projects: readonly string[],
): Promise<readonly { readonly instance_id: string }[]> {
  const { rows } = await trx.raw<{ rows: { instance_id: string }[] }>(
    `select instance_id from instance where name = ? and owner_project <> all(?::text[])
       and state <> 'deregistered' order by instance_id for no key update`,
    [name, [...projects]],
  );
  return rows;
}

/** Names that nobody registers any more and no operator has given; whoever comes first has them again. */
export async function purgePublishers(db: Db): Promise<void> {
  await db.raw(
    `delete from publisher p where set_by is null and not exists (select from instance i where i.name = p.name)`,
  );
}

/** Names that an instance registered and did not take back, of all projects. */
export async function listCapabilityNames(db: Db): Promise<ReadonlySet<string>> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select distinct name from instance where state <> 'deregistered'`,
  );
  return new Set(rows.map(({ name }) => name));
}

/** Whether an instance ever registered the name; instances are forgotten 7 days after they went. */
export async function isCapabilityName(db: Db, name: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ known: boolean }] }>(
    'select exists (select 1 from instance where name = ?) as known',
    [name],
  );
  return rows[0].known;
}

/** Whether an instance of it is registered now, up or not. */
export async function isRegistered(db: Db, name: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ known: boolean }] }>(
    `select exists (select 1 from instance where name = ? and state <> 'deregistered') as known`,
    [name],
  );
  return rows[0].known;
}
