/** The oldest entries of the ledger and the audit log. The ledger lies in months, which go as a whole. */
import { dropPart } from '../../db/parts/keep-parts.ts';
import { type Book, countOld, purgeBook } from '../../db/retention/old-books.ts';
import { countPart, listOldParts } from '../../db/retention/old-parts.ts';
import { count, type PurgePass } from './purge-pass.ts';

const rowsAtOnce = 1_000;
const books: readonly Book[] = ['ledger_entry', 'audit'];

export async function purgeBooks(pass: PurgePass, before: Date): Promise<void> {
  const { db, isTrial } = pass;
  for (const part of await listOldParts(db, 'ledger_entry', before)) {
    if (pass.isStopping()) return;
    const ledger_entry = await countPart(db, part);
    if (!isTrial) await dropPart(db, part);
    count(pass.counts, { ledger_entry });
  }
  for (const book of books) {
    if (isTrial) count(pass.counts, { [book]: await countOld(db, book, before) });
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
