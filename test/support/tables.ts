/** Every table in the database's catalogue, so that new ones are included. */
import type { Db } from '../../src/db/connect.ts';

export async function listTables(db: Db): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  );
  return rows.map(({ name }) => name);
}

/** Tables with a row that contains the text. */
export async function tablesNaming(db: Db, text: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const table of await listTables(db)) {
    const { rows } = await db.raw('select 1 from ?? t where strpos(t::text, ?) > 0 limit 1', [table, text]);
    if (rows.length > 0) found.push(table);
  }
  return found;
}
