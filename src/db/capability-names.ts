import type { Db } from './connect.ts';

/** Names that an instance registered and did not take back, of all projects. */
export const listCapabilityNames = async (db: Db): Promise<ReadonlySet<string>> => {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select distinct name from instance where state <> 'deregistered'`,
  );
  return new Set(rows.map(({ name }) => name));
};
