/**
 * Deletion by age alone: entries of the ledger and the audit log, choices, and partitions.
 *
 * Each statement examines a bounded number of rows from a position on, and deletes those that may go. A partition is
 * dropped as a whole.
 */
import type { Db } from '../connect.ts';
import { listParts, type PartedTable, type TablePart } from '../partitions.ts';
import { query } from '../statements.ts';
import { type BatchMode, type DeletedBatch, deleteBatch, lineOf, selectBatch } from './deleted-tables.ts';

// The ledger and the audit log, of which only the oldest entries may be deleted: `purge_books` (sql/deletion.sql).

export type Book = 'ledger_entry' | 'audit';

interface BookBatch {
  readonly before: Date;
  readonly most: number;
}

/** The table whose entries are deleted one by one. */
function tableOf(book: Book): string {
  return book === 'audit' ? book : 'ledger_entry_default';
}

const keys: Readonly<Record<Book, string>> = { audit: 'entry', ledger_entry: 'entry_id' };

/** Lists a line of JSON for each entry that `purgeBook` deletes in the same snapshot. */
export async function listBookLines(
  trx: Db,
  book: Book,
  { before, most }: BookBatch,
): Promise<readonly string[]> {
  const rows = await query<{ line: string }>(trx).all(
    `select ${lineOf(book, 'oldest')} from (select * from ${tableOf(book)} order by ${keys[book]} limit ?) oldest
     where at < ?`,
    [most, before],
  );
  return rows.map(({ line }) => line);
}

export async function purgeBook(db: Db, book: Book, { before, most }: BookBatch): Promise<number> {
  const row = await query<{ deleted: number }>(db).one('select purge_books(?, ?, ?) as deleted', [
    book,
    before,
    most,
  ]);
  return row.deleted;
}

export async function countOld(db: Db, book: Book, before: Date): Promise<number> {
  const row = await query<{ count: number }>(db).one(
    `select count(*)::int as count from ${tableOf(book)} where at < ?`,
    [before],
  );
  return row.count;
}

/** Partitions whose time span ended earlier. They are dropped as a whole (use-cases/retention/purge.ts). */
export async function listOldParts(db: Db, table: PartedTable, before: Date): Promise<readonly TablePart[]> {
  return (await listParts(db, table)).filter(({ endsAt }) => endsAt < before);
}

const mostCounted = 10_000;

/**
 * Above ten thousand rows, returns the planner's estimate: an exact count takes time in proportion to the partition.
 */
export async function countPart(db: Db, { name }: TablePart): Promise<number> {
  const row = await query<{ count: number }>(db).one(
    `select case when few.count < :most then few.count else greatest(few.count, c.reltuples) end::float8 as count
     from (select count(*) as count from (select from :name: limit :most) seen) few, pg_class c
     where c.oid = to_regclass(:name)`,
    { name, most: mostCounted },
  );
  return row.count;
}

/** The column by which rows are read in order. */
const orderOfRows = {
  attempt_choice: { column: 'attempt_id', least: '' },
  ledger_entry: { column: 'entry_id', least: '0' },
} as const;

/** Yields a line of JSON for each row, in the format of run rows. It reads pages, so that no statement takes long. */
export async function* listPartLines(
  db: Db,
  table: keyof typeof orderOfRows,
  { name }: TablePart,
): AsyncGenerator<string> {
  const { column, least } = orderOfRows[table];
  const limit = 1_000;
  let after: string | undefined = least;
  while (after !== undefined) {
    const page: { rows: { key: string; line: string }[] } = await db.raw(
      `select ${column} as key, ${lineOf(table, 't')} from :name: t
       where ${column} > :after order by ${column} limit :limit`,
      { name, after, limit },
    );
    for (const { line } of page.rows) yield line;
    after = page.rows.length < limit ? undefined : page.rows.at(-1)?.key;
  }
}

async function isSo(db: Db, question: string, bindings: object): Promise<boolean> {
  const row = await query<{ answer: boolean }>(db).one(`select ${question} as answer`, { ...bindings });
  return row.answer;
}

/** Whether an open run has made one of the choices in this partition. */
export function hasOpenChoices(db: Db, { from, to }: TablePart): Promise<boolean> {
  return isSo(
    db,
    `exists (select from run r join attempt a using (run_id)
       where r.finished_at is null and a.attempt_id >= :from and a.attempt_id < :to)`,
    { from, to },
  );
}

/** Whether one of the partition's runs still exists. */
export function hasRuns(db: Db, { from, to }: TablePart): Promise<boolean> {
  return isSo(db, 'exists (select from run where run_id >= :from and run_id < :to)', { from, to });
}

interface ChoiceBatch extends BatchMode {
  readonly after: string;
  /** Choices of attempts with later ids are not examined. */
  readonly upTo: string;
  readonly limit: number;
}

/** Deletes choices one by one if a partition cannot be dropped; those of open runs stay. */
export function purgeChoices(db: Db, { isTrial, isTold, ...place }: ChoiceBatch): Promise<DeletedBatch> {
  const line = isTold ? lineOf('attempt_choice', 'c') : 'null as line';
  const gone = isTrial
    ? 'select null as line from old'
    : `delete from attempt_choice c using old o where c.attempt_id = o.attempt_id returning ${line}`;
  const text = `with seen as materialized (
       select attempt_id from attempt_choice where attempt_id > :after and attempt_id < :upTo
       order by attempt_id limit :limit
     ), old as materialized (
       select s.attempt_id from seen s left join attempt a using (attempt_id) left join run r using (run_id)
       where r.run_id is null or r.finished_at is not null
     ), gone as (${gone})
     ${selectBatch(
       `(select count(*)::int from gone) as deleted,
       (select case when count(*) = :limit then max(attempt_id) end from seen) as place`,
       ['select line from gone'],
     )}`;
  return deleteBatch(db, { table: 'attempt_choice', text, bindings: place });
}
