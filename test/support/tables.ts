/** Every table in the database's catalogue, so that new ones are included. */
import type { Db } from '../../src/db/connect.ts';

export async function listTables(db: Db): Promise<readonly string[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  );
  return rows.map(({ name }) => name);
}

/** Tables with a row that contains the text, also among bytes. */
export async function tablesNaming(db: Db, text: string): Promise<readonly string[]> {
  const tables = await listTables(db);
  const looks = tables.map(
    (table) =>
      `select '${table}' as name where exists (
         select from ${table} t where strpos(cast(t as text), :text) > 0 or strpos(cast(t as text), :hex) > 0)`,
  );
  const hex = Buffer.from(text).toString('hex');
  const { rows } = await db.raw<{ rows: { name: string }[] }>(looks.join(' union all '), { text, hex });
  return rows.map(({ name }) => name);
}
