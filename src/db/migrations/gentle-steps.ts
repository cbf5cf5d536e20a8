/**
 * Parts of a migration that runs while other processes work. No part waits long for a lock, because later statements
 * queue behind it. No part holds a lock for a time that grows with the table. Each part can be repeated, so an
 * interrupted migration starts over. Such a migration runs outside of a transaction (`isPiecewise`), step by step.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../connect.ts';

export interface LockPatience {
  /** How long one try waits for its locks. */
  readonly lockMs: number;
  /** Pause between two tries, in which others get the lock. */
  readonly pauseMs: number;
  readonly tries: number;
}

const patient: LockPatience = { lockMs: 3_000, pauseMs: 500, tries: 200 };

/** A Postgres error code: the lock was not available in time. */
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
 * Runs statements that take only a moment (a column, a constraint that is not valid yet), in one transaction.
 *
 * @param statements each can be repeated: `add column if not exists`
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
  /** The text after the name: `on step (note) where note is not null`. Not for a partitioned table. */
  readonly on: string;
  readonly isUnique?: boolean;
}

/** Builds the index concurrently with writers. An index left by an interrupted try is dropped first. */
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
 * Fills a new column, a batch in each transaction.
 *
 * @param statement changes at most `?` rows, and finds none when all are done
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
