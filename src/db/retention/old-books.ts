/** The ledger and the audit log, of which only the oldest entries may ever go: functions/purge-books.sql.ts. */
import type { Db } from '../connect.ts';

export type Book = 'ledger_entry' | 'audit';

export async function purgeBook(
  db: Db,
  book: Book,
  { before, most }: { readonly before: Date; readonly most: number },
): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ deleted: number }] }>('select purge_books(?, ?, ?) as deleted', [
    book,
    before,
    most,
  ]);
  return rows[0].deleted;
}

export async function countOld(db: Db, book: Book, before: Date): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ count: number }] }>(
    `select count(*)::int as count from ${book === 'audit' ? book : 'ledger_entry_default'} where at < ?`,
    [before],
  );
  return rows[0].count;
}
