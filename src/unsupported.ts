/**
 * What we rely upon in libraries though they do not promise it. Each has a test that an upgrade would fail.
 *
 * Temporal: a connection carries the deadline of a call in an AsyncLocalStorage that its declarations show and its
 * documents do not. Once in use, such a storage makes Node follow every promise of the process, until it is
 * disabled.
 */
import type { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import type { Connection } from '@temporalio/client';

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

/**
 * pg gives a statement a time on the client's side, but leaves it in front of all later ones of its connection. Its client
 * says by a field whether it is ready for the next one, and where its socket is.
 */
interface WaitingClient {
  readonly readyForQuery?: boolean;
  readonly connection: {
    readonly stream: {
      setTimeout(ms: number, onSilence: () => void): unknown;
      destroy(error: Error): unknown;
    };
  };
}

/** A connection that is asked and says nothing for so long is dead: what waits for it fails. */
export function endWhenSilent(client: object, ms: number): void {
  const waiting = client as WaitingClient;
  const { stream } = waiting.connection;
  stream.setTimeout(ms, () => {
    if (waiting.readyForQuery === true) return;
    const error = new Error(`the database said nothing for ${ms} ms`);
    stream.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
  });
}

type Resource = NonNullable<NonNullable<ConstructorParameters<typeof NodeTracerProvider>[0]>['resource']>;

/**
 * OpenTelemetry's packages ask that a resource be made by one of them, which would be a dependency for two strings. What
 * the SDK and the exporter use of one is this.
 */
export function ownResource(attributes: Readonly<Record<string, string>>): Resource {
  const resource: Resource = {
    attributes: { ...attributes },
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  };
  return resource;
}

/** To be called while no call with a deadline is under way; the next one takes the storage into use again. */
export function disableCallContext(connection: Connection): void {
  connection.callContextStorage.disable();
}
