/**
 * Opens the pool, and holds locks on connections of it. Times come back as Date; bigint and numeric as text, so
 * that no cent is lost to a double.
 */
import knex, { type Knex } from 'knex';
import { discardConnection, endWhenSilent } from '../unsupported.ts';

export type Db = Knex;

const connectMs = 5_000;
/** For the way, beside the time that the database gives a statement. */
const wayMs = 2_000;
/** By which the database notices that we have gone, with our locks, within half a minute. */
const serverKeepalive = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3';

/**
 * The other side of a connection may vanish without a word, by a failover or a firewall that forgets: then nothing that
 * was asked waits longer than the time of a statement, and a transaction that we began and left is rolled back.
 *
 * @param url Postgres connection URL
 * @param statementTimeoutMs 0 = none, on neither side
 */
export function connectDatabase(url: string, poolSize: number, statementTimeoutMs = 10_000): Db {
  const silenceMs = statementTimeoutMs === 0 ? 0 : statementTimeoutMs + wayMs;
  return knex({
    client: 'pg',
    connection: {
      connectionString: url,
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: silenceMs,
      connectionTimeoutMillis: connectMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      options: serverKeepalive,
      application_name: 'capstan',
    },
    pool: {
      min: 0,
      max: poolSize,
      afterCreate: (connection: object, done: (error: null, connection: object) => void) => {
        if (silenceMs > 0) endWhenSilent(connection, silenceMs);
        done(null, connection);
      },
    },
    acquireConnectionTimeout: 10_000,
  });
}

/** In a statement's condition: true, and the commit does not wait for the disk. For what a crash may take back. */
export const relaxed = "set_config('synchronous_commit', 'off', true) is not null";

// An advisory lock on a connection of its own: it is gone when the process is.

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
