import type { Db } from '../../db/connect.ts';
import type { BatchMode, DeletedBatch } from '../../db/retention/deleted-batch.ts';
import type { PurgePass } from './purge-pass.ts';

/** Deletes rows by a statement that tells them, and commits it when they are on the disk (P4). */
export function deleteTold(
  { db, exportTo, isTrial }: PurgePass,
  work: (trx: Db, mode: BatchMode) => Promise<DeletedBatch>,
): Promise<DeletedBatch> {
  if (exportTo === null || isTrial) return work(db, { isTrial, isTold: false });
  return db.transaction(async (trx) => {
    const batch = await work(trx, { isTrial, isTold: true });
    await exportTo.write(batch.lines);
    return batch;
  });
}
