import type { Db } from '../connect.ts';

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
