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

/** Of the pool behind a client of Knex, whose type says nothing of it. */
interface PooledClient {
  readonly pool?: {
    numUsed(): number;
    numFree(): number;
    numPendingAcquires(): number;
  };
}

/** How many connections are used and free, and how many askers wait for one. */
export function readPoolState(client: PooledClient): Record<'used' | 'free' | 'pending', number> {
  const { pool } = client;
  return {
    used: pool?.numUsed() ?? 0,
    free: pool?.numFree() ?? 0,
    pending: pool?.numPendingAcquires() ?? 0,
  };
}
