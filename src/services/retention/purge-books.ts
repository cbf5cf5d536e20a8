/** The oldest entries of the ledger and the audit log. */
import { type Book, countOld, purgeBook } from '../../db/retention/old-books.ts';
import { count, type PurgePass } from './purge-pass.ts';

const rowsAtOnce = 1_000;
const books: readonly Book[] = ['ledger_entry', 'audit'];

export async function purgeBooks(pass: PurgePass, before: Date): Promise<void> {
  for (const book of books) {
    if (pass.isTrial) count(pass.counts, { [book]: await countOld(pass.db, book, before) });
    else await purgeOne(pass, book, before);
  }
}

async function purgeOne(pass: PurgePass, book: Book, before: Date): Promise<void> {
  for (let batch = 0; batch < pass.mostBatches && !pass.isStopping(); batch++) {
    const deleted = await purgeBook(pass.db, book, { before, most: rowsAtOnce });
    count(pass.counts, { [book]: deleted });
    if (deleted < rowsAtOnce) return;
  }
}
