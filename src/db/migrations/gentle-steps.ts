/**
 * What a migration is made of that other processes work beside. None waits long for a lock, because whatever comes
 * later waits behind it; none holds one for as long as a table is large; each may be repeated, so a migration that was
 * interrupted begins again. Such a migration runs outside of a transaction (`isPiecewise`), a step after the other.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../connect.ts';

export interface LockPatience {
  /** What one try waits for its locks. */
  readonly lockMs: number;
  /** Between two tries others have their turn. */
  readonly pauseMs: number;
  readonly tries: number;
}

const patient: LockPatience = { lockMs: 3_000, pauseMs: 500, tries: 200 };

/** Of Postgres: the lock was not there in time. */
const lockNotAvailable = '55P03';

async function retryLocks<Result>(
  { pauseMs, tries }: LockPatience,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let left = tries; ; left--) {
    try {
      return await work();
    } catch (error) {
      const { code } = error as { readonly code?: string };
      if (code !== lockNotAvailable || left <= 1) throw error;
      await sleep(pauseMs);
    }
  }
}

/**
 * Statements that need a moment only (a column, a constraint that is not valid yet), in one transaction.
 *
 * @param statements each good for a second time: `add column if not exists`
 */
export function changeTables(
  db: Db,
  statements: readonly string[],
  patience: LockPatience = patient,
): Promise<void> {
  return retryLocks(patience, () =>
    db.transaction(async (trx) => {
      await trx.raw(`set local lock_timeout = ${patience.lockMs}`);
      for (const statement of statements) await trx.raw(statement);
    }),
  );
}

export interface NewIndex {
  readonly name: string;
  /** What follows the name: `on step (note) where note is not null`. Not of a table in parts. */
  readonly on: string;
  readonly isUnique?: boolean;
}

/** Beside writers. What an interrupted try has left is thrown away first. */
export function addIndex(
  db: Db,
  { name, on, isUnique = false }: NewIndex,
  patience: LockPatience = patient,
): Promise<void> {
  return retryLocks(patience, async () => {
    const connection = await db.client.acquireConnection();
    try {
      await connection.query(`set lock_timeout = ${patience.lockMs}`);
      const { rows } = await connection.query(
        'select i.indisvalid as is_valid from pg_index i where i.indexrelid = to_regclass($1)',
        [name],
      );
      if (rows[0]?.is_valid === true) return;
      if (rows.length > 0) await connection.query(`drop index concurrently if exists ${name}`);
      await connection.query(`create ${isUnique ? 'unique ' : ''}index concurrently ${name} ${on}`);
    } finally {
      await connection.query('reset lock_timeout').catch(() => undefined);
      await db.client.releaseConnection(connection);
    }
  });
}

/**
 * Fills what a new column lacks, a batch in each transaction.
 *
 * @param statement changes at most `?` rows, and finds none when all is done
 * @returns how many
 */
export async function fillInBatches(db: Db, statement: string, batch = 1_000): Promise<number> {
  let filled = 0;
  for (;;) {
    const { rowCount } = await retryLocks(patient, () => db.raw<{ rowCount: number }>(statement, [batch]));
    filled += rowCount;
    if (rowCount === 0) return filled;
  }
}
