/**
 * The connection to Temporal, by its own configuration, `TEMPORAL_*` variables and TOML profiles, and the deadline
 * of every call on it.
 */
import { Client, Connection, isGrpcServiceError, ServiceError } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { disableCallContext } from '../../library-internals.ts';
import { createDataConverter } from './payload-codec.ts';

/** `host:port` */
export function readTemporalAddress(): string {
  return loadClientConnectConfig().connectionOptions.address ?? 'localhost:7233';
}

/** A client that connects when it is used, and again whenever it has to. @param payloadKeys the setting `PAYLOAD_KEYS` */
export function openTemporal(payloadKeys?: string): Client {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  const connection = Connection.lazy({ ...connectionOptions, connectTimeout: '10 seconds' });
  const dataConverter = createDataConverter(payloadKeys);
  return new Client({ connection, dataConverter, ...(namespace === undefined ? {} : { namespace }) });
}

// A server that takes the connection and answers nothing is as good as away: every call has a deadline. It travels in a
// storage that, once in use, makes Node follow every promise of the process; it is put down when no call is open. So
// all calls on one connection are bounded by the same function.

export type Bounded = <Result>(call: () => Promise<Result>, ms?: number) => Promise<Result>;

const answerMs = 10_000;

/** Every client of ours has it; the type of `Client` lacks it. */
export function connectionOf(client: Client): Connection {
  return (client as Client & { readonly connection: Connection }).connection;
}

/** One per connection. */
export function createBoundedCalls(client: Client): Bounded {
  const connection = connectionOf(client);
  let open = 0;
  return async (call, ms = answerMs) => {
    open += 1;
    try {
      return await connection.withDeadline(Date.now() + ms, call);
    } finally {
      open -= 1;
      if (open === 0) disableCallContext(connection);
    }
  };
}

/** Those that change our behaviour; all are in the specification of gRPC. */
const statuses = { invalidArgument: 3, notFound: 5, permissionDenied: 7, unimplemented: 12 } as const;

/** Whether a call of Temporal's own services ended by one of these. */
export function hasStatus(error: unknown, ...names: readonly (keyof typeof statuses)[]): boolean {
  return isGrpcServiceError(error) && names.some((name) => Number(error.code) === statuses[name]);
}

/** Temporal does not answer, or refuses. The name is that of the errors with which a worker does not start. */
class TransportError extends Error {
  override readonly name = 'TransportError';
}

/** @returns the same error, or one in Temporal's own words where a call to it has failed */
export function toTransportError(thrown: unknown): unknown {
  const fault = thrown instanceof ServiceError ? thrown.cause : thrown;
  return isGrpcServiceError(fault) ? new TransportError(fault.details, { cause: thrown }) : thrown;
}

/** @throws TransportError unless Temporal answers within 10 s and has the namespace */
export async function requireNamespace(client: Client, bounded: Bounded): Promise<void> {
  const connection = connectionOf(client);
  await connection.ensureConnected().catch((cause: Error) => {
    throw new TransportError(cause.message, { cause });
  });
  const { namespace } = client.options;
  try {
    await bounded(() => connection.workflowService.describeNamespace({ namespace }));
  } catch (thrown) {
    if (!hasStatus(thrown, 'permissionDenied')) throw toTransportError(thrown);
  }
}
