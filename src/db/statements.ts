/**
 * How statements are sent, and why Postgres refuses them. Statements of every call bypass the query builder, which
 * takes longer over a small statement than the database does.
 */

import { writeExactJson } from '@capstan/core/contracts/exact-json';
import type { Knex } from 'knex';
import pg from 'pg';
import { discardConnection } from '../library-internals.ts';
import type { Db } from './connect.ts';

interface PreparedStatement {
  readonly name: string;
  /** SQL with `$1`, `$2` and so on. */
  readonly text: string;
  readonly values: readonly unknown[];
  /** After this time the connection counts as dead. Default: a little more than the statement timeout. */
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 12_000;

/** @throws DatabaseError of the database, or Error of the connection */
export async function runPrepared<Row extends pg.QueryResultRow>(
  db: Db,
  { name, text, values, timeoutMs = defaultTimeoutMs }: PreparedStatement,
): Promise<pg.QueryResult<Row>> {
  const connection: pg.Client = await db.client.acquireConnection();
  db.client.emit('query', { sql: text, bindings: values }); // as the query builder does
  try {
    const statement = { name, text, values: [...values], query_timeout: timeoutMs };
    return await connection.query<Row>(statement);
  } catch (error) {
    // Otherwise the database has closed the connection, or a late response may still arrive on it.
    const isOfStatement = error instanceof pg.DatabaseError && error.severity === 'ERROR';
    if (!isOfStatement) discardConnection(connection, error);
    throw error;
  } finally {
    await db.client.releaseConnection(connection);
  }
}

type Values = readonly Knex.RawBinding[] | Readonly<Record<string, unknown>>;

/**
 * Sends a statement with `?` for each value, or `:name` for each named one, and gives its rows.
 * @param prepared name of a statement with `?` that is sent all the time: its plan takes longer than its work
 */
export function query<Row = unknown>(db: Db, prepared?: string) {
  const send = async (sql: string, values?: Values): Promise<{ rows: Row[]; rowCount: number }> => {
    if (prepared === undefined) return db.raw(sql, values as Knex.ValueDict);
    let last = 0;
    const text = sql.replaceAll('?', () => `$${++last}`);
    const sent = await runPrepared(db, { name: prepared, text, values: (values ?? []) as [] });
    return { rows: sent.rows as Row[], rowCount: sent.rowCount ?? 0 };
  };
  const all = async (sql: string, values?: Values): Promise<Row[]> => (await send(sql, values)).rows;
  const written = async (sql: string, values?: Values): Promise<number> => (await send(sql, values)).rowCount;
  return {
    all,
    /** Undefined: the statement has no row. */
    first: async (sql: string, values?: Values): Promise<Row | undefined> => (await all(sql, values))[0],
    /** Whether it has a row. */
    some: async (sql: string, values?: Values): Promise<boolean> => (await all(sql, values)).length > 0,
    /** For a statement that always has a row. */
    one: async (sql: string, values?: Values): Promise<Row> => (await all(sql, values))[0] as Row,
    /** The number of rows that it has written or deleted. */
    written,
    /** Whether it has written or deleted a row. */
    wrote: async (sql: string, values?: Values): Promise<boolean> => (await written(sql, values)) > 0,
  };
}

/** JSON text for a `json` column, which keeps every number as it is written. */
export function toJson(value: unknown): string {
  return writeExactJson(value);
}

/**
 * JSON text for a `jsonb` column. That type rejects NUL and lone surrogates, and messages of instances may contain
 * both. They become U+FFFD, so that no settlement is lost because of the text of an error.
 */
export function toJsonb(value: object | string | number | boolean | null): string {
  const text = toJson(value);
  if (!text.includes('\\u')) return text;
  return text.replace(/\\(?:\\|u0000|ud[89a-f][0-9a-f]{2})/g, (code) => (code === '\\\\' ? code : '\ufffd'));
}

/** Reasons why Postgres refuses a statement, by SQLSTATE (its manual, appendix A). */
const states = {
  unique_violation: '23505',
  foreign_key_violation: '23503',
  lock_not_available: '55P03',
} as const;

export function hasSqlState(thrown: unknown, state: keyof typeof states): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === states[state];
}

/**
 * A timestamp as text in the form of the API, which `Date.toISOString` gives: JSON that Postgres makes has another one.
 *
 * @param time an expression of type timestamptz
 */
export function instantText(time: string): string {
  return `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

// Old rows are deleted in small statements: one that takes a whole backlog would run into its timeout every time.

interface Purge {
  readonly table:
    | 'idempotency'
    | 'advice_answer'
    | 'session'
    | 'login_code'
    | 'webhook_delivery'
    | 'hook_delivery'
    | 'outside_event'
    | 'schedule_gap';
  /** The age from which rows are deleted. */
  readonly hours: number;
  /** Rows per statement. */
  readonly batch?: number;
}

/** Batches of one call; the next call takes the rest. */
const mostBatches = 200;

/** @returns how many */
export async function purgeOld(db: Db, { table, hours, batch = 1_000 }: Purge): Promise<number> {
  let purged = 0;
  for (let round = 0; round < mostBatches; round++) {
    const rowCount = await query(db).written(
      `delete from ${table} where ctid = any (array(select ctid from ${table}
         where created_at < now() - make_interval(hours => ?) order by created_at limit ?))`,
      [hours, batch],
    );
    purged += rowCount;
    if (rowCount < batch) break;
  }
  return purged;
}

/** Rows that Temporal accepted, by id. */
export interface DeliveredPage {
  readonly after: string;
  readonly olderThanMs: number;
  readonly limit: number;
}
