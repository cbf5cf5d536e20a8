import type { Db } from '../../db/connect.ts';
import { listErasing } from '../../db/erasure/erasure.ts';
import { AppError } from '../../errors/app-error.ts';

/** Under the lock of keys, which whoever begins an erasure takes too. @throws AppError `state_conflict` */
export async function refuseErasing(trx: Db, projects: readonly string[]): Promise<void> {
  const erasing = await listErasing(trx, projects);
  if (erasing.length > 0)
    throw new AppError('state_conflict', `${erasing.join(', ')}: the project is being erased`);
}
