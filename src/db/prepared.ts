/**
 * Statements on the way of every call, past the query builder: it takes longer over a small one than the database does.
 */
import pg from 'pg';
import { discardConnection } from '../unsupported/knex-connection.ts';
import type { Db } from './connect.ts';

export interface PreparedStatement {
  readonly name: string;
  /** With `$1`, `$2` and so on. */
  readonly text: string;
  readonly values: readonly unknown[];
  /** Then the connection counts as dead. Default: a little more than what the database gives a statement. */
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 12_000;

/** @throws DatabaseError of the database, Error of the way to it */
export async function runPrepared<Row extends pg.QueryResultRow>(
  db: Db,
  { name, text, values, timeoutMs = defaultTimeoutMs }: PreparedStatement,
): Promise<Row[]> {
  const connection: pg.Client = await db.client.acquireConnection();
  db.client.emit('query', { sql: text, bindings: values }); // as the query builder does
  try {
    const statement = { name, text, values: [...values], query_timeout: timeoutMs };
    return (await connection.query<Row>(statement)).rows;
  } catch (error) {
    // Else the database has ended the connection, or nobody knows what it still has to say.
    const isOfStatement = error instanceof pg.DatabaseError && error.severity === 'ERROR';
    if (!isOfStatement) discardConnection(connection, error);
    throw error;
  } finally {
    await db.client.releaseConnection(connection);
  }
}
