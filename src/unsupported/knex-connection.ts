/**
 * Knex has no call that throws a connection away; its dialects note a reason on the connection, and its pool ends one
 * that has a reason instead of lending it again.
 */
interface PooledConnection {
  __knex__disposed?: unknown;
}

/** The connection ends when it is given back to the pool. */
export function discardConnection(connection: object, reason: unknown): void {
  (connection as PooledConnection).__knex__disposed = reason;
}
