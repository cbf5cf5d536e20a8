/** Every table of the database, as its catalogue says: one that is new is looked at too. */
import type { Db } from '../../src/db/connect.ts';

export async function listTables(db: Db): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  );
  return rows.map(({ name }) => name);
}

/** Tables with a row in which the text stands. */
export async function tablesNaming(db: Db, text: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const table of await listTables(db)) {
    const { rows } = await db.raw('select 1 from ?? t where strpos(t::text, ?) > 0 limit 1', [table, text]);
    if (rows.length > 0) found.push(table);
  }
  return found;
}
