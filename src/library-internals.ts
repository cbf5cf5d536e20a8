/**
 * Behaviour of libraries that we rely on though they do not promise it. Each has a test that fails after an upgrade
 * that breaks it.
 *
 * Temporal: a connection keeps the deadline of a call in an AsyncLocalStorage, which its declarations show and its
 * documentation does not. Once in use, such a storage makes Node track every promise of the process until it is
 * disabled.
 */
import type { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import type { Connection } from '@temporalio/client';

/**
 * Knex has no call that discards a connection. Its dialects note a reason on the connection; its pool then closes that
 * connection instead of lending it again.
 */
interface PooledConnection {
  __knex__disposed?: unknown;
}

/** Marks the connection; the pool closes it on release. */
export function discardConnection(connection: object, reason: unknown): void {
  (connection as PooledConnection).__knex__disposed = reason;
}

/** The pool behind a Knex client, which the client's type does not declare. */
interface PooledClient {
  readonly pool?: { numUsed(): number; numFree(): number; numPendingAcquires(): number };
}

/** Counts used connections, free connections and callers that wait for one. */
export function readPoolState(client: PooledClient): Record<'used' | 'free' | 'pending', number> {
  const { pool } = client;
  return { used: pool?.numUsed() ?? 0, free: pool?.numFree() ?? 0, pending: pool?.numPendingAcquires() ?? 0 };
}

/**
 * pg applies a client-side timeout to a statement, but leaves the statement ahead of all later ones of its connection.
 * Fields of its client show whether it is ready for the next statement, and its socket.
 */
interface WaitingClient {
  readonly readyForQuery?: boolean;
  readonly connection: {
    readonly stream: {
      readonly bytesRead: number;
      setTimeout(ms: number, onSilence: () => void): unknown;
      destroy(error: Error): unknown;
    };
  };
}

/**
 * Destroys a connection that has a statement open and is silent for `ms`: everything that waits for it fails. A process
 * that wakes late first reads what has arrived.
 */
export function endWhenSilent(client: object, ms: number): void {
  const waiting = client as WaitingClient;
  const { stream } = waiting.connection;
  stream.setTimeout(ms, () => {
    const { bytesRead } = stream;
    setImmediate(() => {
      if (waiting.readyForQuery === true || stream.bytesRead > bytesRead) return;
      const error = new Error(`the database said nothing for ${ms} ms`);
      stream.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
    });
  });
}

type Resource = NonNullable<NonNullable<ConstructorParameters<typeof NodeTracerProvider>[0]>['resource']>;

/**
 * OpenTelemetry expects a resource made by one of its packages, a dependency for the sake of two strings. This object
 * has the parts that the SDK and the exporter use.
 */
export function ownResource(attributes: Readonly<Record<string, string>>): Resource {
  const resource: Resource = {
    attributes: { ...attributes },
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  };
  return resource;
}

/** Call this only while no call with a deadline is in flight; the next such call enables the storage again. */
export function disableCallContext(connection: Connection): void {
  connection.callContextStorage.disable();
}
