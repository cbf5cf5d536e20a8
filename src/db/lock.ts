/** An advisory lock on a connection of its own: it is gone when the process is. */
import { discardConnection } from '../unsupported/knex-connection.ts';
import type { Db } from './connect.ts';

export interface LockHold {
  /** False when the connection broke, and the lock with it. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

interface LockConnection {
  query(text: string, values?: readonly unknown[]): Promise<{ rows: { held: boolean }[] }>;
}

/** @returns null when another process holds it */
export async function holdLock(db: Db, key: number): Promise<LockHold | null> {
  const connection: LockConnection = await db.client.acquireConnection();
  const giveBack = (): Promise<void> => db.client.releaseConnection(connection);
  /** A connection that failed may hold the lock still: the pool must end it, not lend it again. */
  const discard = async (error: unknown): Promise<never> => {
    discardConnection(connection, error);
    await giveBack();
    throw error;
  };
  const { rows } = await connection
    .query('select pg_try_advisory_lock($1) as held', [key])
    .catch((error: unknown) => discard(error));
  if (rows[0]?.held !== true) {
    await giveBack();
    return null;
  }
  return {
    isHeld: async () => {
      try {
        await connection.query('select 1');
        return true;
      } catch (error) {
        await discard(error).catch(() => undefined);
        return false;
      }
    },
    release: async () => {
      await connection.query('select pg_advisory_unlock($1)', [key]).catch(() => undefined);
      await giveBack();
    },
  };
}
