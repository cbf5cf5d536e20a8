/** The ledger and the audit log, of which only the oldest entries may ever go: functions/purge-books.sql.ts. */
import type { Db } from '../connect.ts';
import { lineOf } from './deleted-batch.ts';

export type Book = 'ledger_entry' | 'audit';

export interface BookBatch {
  readonly before: Date;
  readonly most: number;
}

/** Where the entries are that go one by one. */
function tableOf(book: Book): string {
  return book === 'audit' ? book : 'ledger_entry_default';
}

const keys: Readonly<Record<Book, string>> = { audit: 'entry', ledger_entry: 'entry_id' };

/** A line of JSON for each entry that `purgeBook` deletes in the same snapshot. */
export async function listBookLines(
  trx: Db,
  book: Book,
  { before, most }: BookBatch,
): Promise<readonly string[]> {
  const { rows } = await trx.raw<{ rows: { line: string }[] }>(
    `select ${lineOf(book, 'oldest')} from (select * from ${tableOf(book)} order by ${keys[book]} limit ?) oldest
     where at < ?`,
    [most, before],
  );
  return rows.map(({ line }) => line);
}

export async function purgeBook(db: Db, book: Book, { before, most }: BookBatch): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ deleted: number }] }>('select purge_books(?, ?, ?) as deleted', [
    book,
    before,
    most,
  ]);
  return rows[0].deleted;
}

export async function countOld(db: Db, book: Book, before: Date): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ count: number }] }>(
    `select count(*)::int as count from ${tableOf(book)} where at < ?`,
    [before],
  );
  return rows[0].count;
}
