/** What a project's day has cost so far. */
import type { Db } from '../../src/db/connect.ts';
import { waitFor } from '../support/wait.ts';

export interface Account {
  readonly limitUsd: number;
  readonly spentUsd: number;
  readonly reservedUsd: number;
}

/**
 * Waits until nothing is reserved: an answer may come before its end is written.
 */
export function readAccount(db: Db, projectId: string): Promise<Account> {
  return waitFor('all reservations to be released', async () => {
    const account = await readNow(db, projectId);
    return account.reservedUsd === 0 ? account : null;
  });
}

async function readNow(db: Db, projectId: string): Promise<Account> {
  const { rows } = await db.raw<{ rows: [Account] }>(
    `select coalesce(max(limit_nano), 0) / 1e9::float8 as "limitUsd", coalesce(sum(spent_nano), 0) / 1e9::float8 as "spentUsd",
       coalesce(sum(reserved_nano), 0) / 1e9::float8 as "reservedUsd" from budget where scope = 'project:' || ?`,
    [projectId],
  );
  return rows[0];
}
