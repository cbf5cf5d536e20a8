/** The oldest entries of the ledger and the audit log. The ledger lies in months, which go as a whole. */
import { type Book, countOld, listBookLines, purgeBook } from '../../db/retention/old-books.ts';
import { listOldParts } from '../../db/retention/old-parts.ts';
import { purgeParts } from './purge-part.ts';
import { count, type PurgePass } from './purge-pass.ts';
import { takeTurns } from './take-turns.ts';

const rowsAtOnce = 1_000;
const books: readonly Book[] = ['ledger_entry', 'audit'];

export async function purgeBooks(pass: PurgePass, before: Date): Promise<void> {
  await takeTurns([
    () => purgeMonths(pass, before),
    ...books.map((book) => () => purgeEntries(pass, book, before)),
  ]);
}

async function purgeMonths(pass: PurgePass, before: Date): Promise<void> {
  await purgeParts(pass, 'ledger_entry', await listOldParts(pass.db, 'ledger_entry', before));
}

async function purgeEntries(pass: PurgePass, book: Book, before: Date): Promise<void> {
  if (pass.isTrial) return count(pass.counts, { [book]: await countOld(pass.db, book, before) });
  for (let batch = 0; batch < pass.mostBatches && !pass.isStopping(); batch++) {
    const deleted = await purgeOldest(pass, book, before);
    count(pass.counts, { [book]: deleted });
    if (deleted < rowsAtOnce) return;
  }
}

/** In one snapshot, so that those that go are those that were told; who deletes the same at that moment ends this. */
function purgeOldest({ db, exportTo }: PurgePass, book: Book, before: Date): Promise<number> {
  const batch = { before, most: rowsAtOnce };
  if (exportTo === null) return purgeBook(db, book, batch);
  return db.transaction(
    async (trx) => {
      await exportTo.write(await listBookLines(trx, book, batch));
      return purgeBook(trx, book, batch);
    },
    { isolationLevel: 'repeatable read' },
  );
}
