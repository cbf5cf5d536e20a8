/**
 * Opens the pool. Times come back as Date; bigint and numeric as text, so that no cent is lost to a double; JSON with
 * exact numbers.
 */

import { parseExactJson } from '@capstan/core/contracts/exact-json';
import knex, { type Knex } from 'knex';
import pg from 'pg';
import { endWhenSilent } from '../library-internals.ts';
import { connectionTo } from './connection.ts';

export type Db = Knex;

/** Allowance for the network, on top of the statement timeout. */
const wayMs = 2_000;
const { JSON: json, JSONB: jsonb } = pg.types.builtins;

/** Numbers of JSON columns stay as they are stored. */
const columnTypes: Knex.PgConnectionConfig['types'] = {
  getTypeParser: (oid: number, format: string) =>
    oid === json || oid === jsonb ? parseExactJson : pg.types.getTypeParser(oid, format as 'text'),
};

/**
 * The peer of a connection may vanish silently, by a failover or a firewall that drops its state. Then no query waits
 * longer than the statement timeout, and an abandoned transaction is rolled back.
 *
 * @param url Postgres connection URL
 * @param statementTimeoutMs 0 = no timeout, on either side
 */
export function connectDatabase(url: string, poolSize: number, statementTimeoutMs = 10_000): Db {
  const silenceMs = statementTimeoutMs === 0 ? 0 : statementTimeoutMs + wayMs;
  return knex({
    client: 'pg',
    connection: {
      ...connectionTo(url),
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: silenceMs,
      types: columnTypes,
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

/**
 * A condition for a statement: it is true, and the commit does not wait for the disk. For writes that a crash may undo.
 */
export const relaxed = "set_config('synchronous_commit', 'off', true) is not null";
