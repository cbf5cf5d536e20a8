/** How far the schema of a database is, without writing to it. */
import { connectDatabase } from './connect.ts';
import { checkFloor, migrationNames, migrationTable } from './migrate.ts';

export interface SchemaState {
  readonly applied: readonly string[];
  /** What `migrate` would apply, in this order. */
  readonly pending: readonly string[];
  /** What a newer version has applied and this one does not know. */
  readonly newer: readonly string[];
}

/** @throws Error when the database has left this version behind */
export async function readSchemaState(url: string): Promise<SchemaState> {
  const db = connectDatabase(url, 2, 0);
  try {
    await checkFloor(db);
    const hasTable = await db.schema.hasTable(migrationTable);
    const found: string[] = hasTable ? await db(migrationTable).orderBy('id').pluck('name') : [];
    return {
      applied: migrationNames.filter((name) => found.includes(name)),
      pending: migrationNames.filter((name) => !found.includes(name)),
      newer: found.filter((name) => !migrationNames.includes(name)),
    };
  } finally {
    await db.destroy();
  }
}
