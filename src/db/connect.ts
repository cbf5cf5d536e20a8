/** Opens the pool. Times come back as Date; bigint and numeric as text, so that no cent is lost to a double. */
import knex, { type Knex } from 'knex';

export type Db = Knex;

/**
 * @param url Postgres connection URL
 * @param statementTimeoutMs 0 = none
 */
export function connectDatabase(url: string, poolSize: number, statementTimeoutMs = 10_000): Db {
  return knex({
    client: 'pg',
    connection: {
      connectionString: url,
      statement_timeout: statementTimeoutMs,
      application_name: 'capstan',
    },
    pool: { min: 0, max: poolSize },
    acquireConnectionTimeout: 10_000,
  });
}

/** In a statement's condition: true, and the commit does not wait for the disk. For what a crash may take back. */
export const relaxed = "set_config('synchronous_commit', 'off', true) is not null";
