/** Opens the pool. Times come back as Date; bigint and numeric as text, so that no cent is lost to a double. */
import knex, { type Knex } from 'knex';
import { endWhenSilent } from '../unsupported/pg-silence.ts';

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
