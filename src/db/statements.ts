/**
 * How statements are sent, and why Postgres refuses them. Those on the way of every call go past the query
 * builder: it takes longer over a small one than the database does.
 */
import pg from 'pg';
import { discardConnection } from '../unsupported.ts';
import type { Db } from './connect.ts';

interface PreparedStatement {
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

/**
 * JSON text for a `jsonb` column. It holds neither NUL nor half a surrogate pair, and messages of instances may
 * contain both; they become U+FFFD, so that no settlement is lost to the text of an error.
 */
export function toJsonb(value: object | string | number | boolean | null): string {
  const text = JSON.stringify(value);
  if (!text.includes('\\u')) return text;
  return text.replace(/\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g, (code) => (code === '\\\\' ? code : '\ufffd'));
}

/** Why Postgres refused a statement, by the code that it gives (its manual, appendix A). */
const states = {
  unique_violation: '23505',
  foreign_key_violation: '23503',
  lock_not_available: '55P03',
} as const;

export function hasSqlState(thrown: unknown, state: keyof typeof states): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === states[state];
}

// Old rows go in small statements: one that takes all of a backlog runs into its time limit, and then for ever.

interface Purge {
  readonly table: 'idempotency' | 'advice_answer' | 'session' | 'login_code' | 'webhook_delivery';
  /** The age from which rows are deleted. */
  readonly hours: number;
  /** Rows of one statement. */
  readonly batch?: number;
}

/** How much one call deletes; what is left is for the next. */
const mostBatches = 200;

/** @returns how many */
export async function purgeOld(db: Db, { table, hours, batch = 1_000 }: Purge): Promise<number> {
  let purged = 0;
  for (let round = 0; round < mostBatches; round++) {
    const { rowCount } = await db.raw<{ rowCount: number }>(
      `delete from ${table} where ctid = any (array(select ctid from ${table}
         where created_at < now() - make_interval(hours => ?) order by created_at limit ?))`,
      [hours, batch],
    );
    purged += rowCount;
    if (rowCount < batch) break;
  }
  return purged;
}
