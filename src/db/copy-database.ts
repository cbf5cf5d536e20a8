/**
 * Copies all rows of one database into another one of the same schema, which must be empty. Both sides speak through
 * their ordinary connections, so versions of Postgres may differ, and the roles need no more than their own tables.
 *
 * The source is read in one snapshot and never written. The target changes in one transaction: a copy that is killed
 * leaves nothing. In it foreign keys are dropped and triggers are off, so that the order of tables does not matter;
 * adding the foreign keys again checks them all. The row of `cluster` stays behind: the next process that migrates the
 * copy finds out that its transaction numbers come from another cluster (recovery.ts).
 */
import { connectDatabase, type Db } from './connect.ts';
import { takeLock } from './locks.ts';
import { addListedParts, listParts, partedTables } from './partitions.ts';
import { query } from './statements.ts';

/** The target's own: they describe its schema and its cluster. */
const ownTables = ['cluster', 'schema_floor', 'schema_function', 'schema_migration', 'schema_migration_lock'];

/** A migration writes their first rows. */
const seededTables: readonly string[] = ['budget', 'callback_key'];

export interface CopiedTable {
  readonly table: string;
  readonly rows: number;
}

/** In the order of names. A partitioned table is one. */
async function listTables(db: Db): Promise<string[]> {
  const tables: string[] = await db('pg_class')
    .whereRaw("relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition")
    .orderBy('relname')
    .pluck('relname');
  return tables.filter((table) => !ownTables.includes(table));
}

/** Names of tables that hold rows which no migration has written. */
async function listFilled(db: Db, tables: readonly string[]): Promise<string[]> {
  const filled: string[] = [];
  for (const table of tables.filter((name) => !seededTables.includes(name))) {
    if ((await db(table).first(db.raw('1'))) !== undefined) filled.push(table);
  }
  return filled;
}

/** @returns names of the tables that keep a database from being a target; none: it is empty, or has no schema yet */
export async function findFilledTables(url: string): Promise<readonly string[]> {
  const db = connectDatabase(url, 1, 0);
  try {
    return await listFilled(db, await listTables(db));
  } finally {
    await db.destroy();
  }
}

/** Columns in their order, with their types: rows travel as text in this form. */
async function readShape(db: Db, table: string): Promise<string> {
  const { shape } = await query<{ shape: string }>(db).one(
    `select coalesce(string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum), 'none') as shape
     from pg_attribute where attrelid = to_regclass(?) and attnum > 0 and not attisdropped`,
    [table],
  );
  return shape;
}

async function requireSameShape(source: Db, target: Db, table: string): Promise<void> {
  const [here, there] = [await readShape(source, table), await readShape(target, table)];
  if (here !== there)
    throw new Error(
      `the table ${table} differs between the databases, so nothing was copied: columns of the source: ${here}; of the target: ${there}`,
    );
}

// Text of rows is equal on both sides only with equal settings.
async function fixSettings(trx: Db): Promise<void> {
  await trx.raw(
    `set local timezone = 'UTC'; set local datestyle = 'ISO'; set local intervalstyle = 'postgres';
     set local bytea_output = 'hex'; set local extra_float_digits = 1`,
  );
}

const batchBytes = 4_000_000;
const [firstBatch, largestBatch] = [100, 2_000];

/** Batches are smaller where rows are larger. @returns how many rows */
async function copyRows(source: Db, target: Db, table: string): Promise<number> {
  await source.raw('declare copied no scroll cursor for select r::text as line from ?? r', [table]);
  let copied = 0;
  for (let wanted = firstBatch; ; ) {
    const lines = (await query<{ line: string }>(source).all(`fetch ${wanted} from copied`)).map(
      ({ line }) => line,
    );
    if (lines.length === 0) break;
    // The subquery with `offset` is evaluated once for each row, not once for each column.
    await target.raw(
      `insert into ?? overriding system value
       select (s.r).* from (select line::?? as r from unnest(?::text[]) line offset 0) s`,
      [table, table, lines],
    );
    copied += lines.length;
    const bytes = lines.reduce((sum, { length }) => sum + length, 1);
    wanted = Math.max(1, Math.min(largestBatch, Math.floor((lines.length * batchBytes) / bytes)));
  }
  await source.raw('close copied');
  return copied;
}

interface Content {
  readonly rows: number;
  readonly sum: string;
}

function readContent(db: Db, table: string): Promise<Content> {
  return query<Content>(db).one(
    `select count(*)::int as rows, coalesce(sum(hashtextextended(r::text, 0)::numeric), 0)::text as sum from ${table} r`,
  );
}

/** @throws Error when the rows are not those of the source */
async function compare(source: Db, target: Db, { table, rows }: CopiedTable): Promise<void> {
  const [here, there] = [await readContent(source, table), await readContent(target, table)];
  if (here.rows === rows && there.rows === rows && here.sum === there.sum) return;
  throw new Error(
    `the copy of ${table} differs, so nothing was kept: ${here.rows} rows in the source, ${rows} copied, ${there.rows} in the target` +
      `${here.sum === there.sum ? '' : ', with other contents'}`,
  );
}

interface ForeignKey {
  readonly name: string;
  readonly table: string;
  readonly definition: string;
}

/** Without those that partitions have from their table. */
function listForeignKeys(db: Db): Promise<readonly ForeignKey[]> {
  return query<ForeignKey>(db).all(
    `select c.conname as name, t.relname as table, pg_get_constraintdef(c.oid) as definition
     from pg_constraint c join pg_class t on t.oid = c.conrelid
     where c.contype = 'f' and c.conparentid = 0 and t.relnamespace = 'public'::regnamespace
     order by t.relname, c.conname`,
  );
}

/** Foreign keys are checked at once when they are back. */
async function withoutRules(trx: Db, tables: readonly string[], work: () => Promise<void>): Promise<void> {
  const keys = await listForeignKeys(trx);
  for (const { table, name } of keys) await trx.raw('alter table ?? drop constraint ??', [table, name]);
  for (const table of tables) await trx.raw('alter table ?? disable trigger user', [table]);
  await work();
  for (const table of tables) await trx.raw('alter table ?? enable trigger user', [table]);
  for (const { table, name, definition } of keys)
    await trx.raw(`alter table ?? add constraint ?? ${definition}`, [table, name]);
}

/** Numbers continue where those of the source have ended. */
async function copySequences(source: Db, target: Db): Promise<void> {
  const positions = await query<{ name: string; last: string }>(source).all(
    `select sequencename as name, last_value::text as last from pg_sequences
     where schemaname = 'public' and last_value is not null and sequencename not like 'schema\\_migration%'`,
  );
  for (const { name, last } of positions)
    await target.raw('select setval(?::regclass, ?::bigint)', [`public.${name}`, last]);
}

async function copyParts(source: Db, target: Db): Promise<void> {
  for (const table of partedTables) await addListedParts(target, table, await listParts(source, table));
}

const lockWait = '10s';

/** @throws Error that names the filled tables */
async function claimTarget(trx: Db, tables: readonly string[]): Promise<void> {
  await trx.raw(`set local lock_timeout = '${lockWait}'`);
  await takeLock(trx, 'migration');
  await trx.raw(`lock table ${tables.join(', ')} in access exclusive mode`);
  const filled = await listFilled(trx, tables);
  if (filled.length > 0)
    throw new Error(`the target is not empty: ${filled.join(', ')} hold rows; nothing was copied`);
}

export interface DatabaseCopy {
  readonly sourceUrl: string;
  /** Migrated to the schema of the source, and empty. */
  readonly targetUrl: string;
  /** Called for each copied table with rows, before the copy is complete. */
  readonly onTable: (copied: CopiedTable) => void;
}

async function copyAll(source: Db, target: Db, { onTable }: DatabaseCopy): Promise<CopiedTable[]> {
  const tables = await listTables(target);
  const copied: CopiedTable[] = [];
  await fixSettings(source);
  await fixSettings(target);
  await claimTarget(target, tables);
  for (const table of tables) await requireSameShape(source, target, table);
  await withoutRules(target, tables, async () => {
    await target.raw(`truncate ${tables.join(', ')}, cluster`);
    await copyParts(source, target);
    for (const table of tables) {
      const one = { table, rows: await copyRows(source, target, table) };
      await compare(source, target, one);
      copied.push(one);
      if (one.rows > 0) onTable(one);
    }
  });
  await copySequences(source, target);
  return copied;
}

/** @throws Error when the target is not empty or the schemas differ; the target is then as it was */
export async function copyDatabase(order: DatabaseCopy): Promise<readonly CopiedTable[]> {
  const source = connectDatabase(order.sourceUrl, 1, 0);
  const target = connectDatabase(order.targetUrl, 1, 0);
  try {
    return await source.transaction((from) => target.transaction((to) => copyAll(from, to, order)), {
      isolationLevel: 'repeatable read',
      readOnly: true,
    });
  } finally {
    await Promise.all([source.destroy(), target.destroy()]);
  }
}
