import { connectionOf, createBoundedCalls } from '../clients/temporal/bounded-calls.ts';
import { openTemporal } from '../clients/temporal/connect.ts';
import { createDataConverter } from '../clients/temporal/data-converter.ts';
import { readNewestKeyId } from '../clients/temporal/payload-keys.ts';
import { createRunWorkflows } from '../clients/temporal/run-workflows.ts';
import { createSchedules } from '../clients/temporal/schedules.ts';
import { addMissingSearchAttributes } from '../clients/temporal/search-attributes.ts';
import type { Config } from '../config.ts';

export type Temporal = ReturnType<typeof createTemporal>;

/** For a worker; clients make theirs. @throws Error that says which key is wrong */
export function readDataConverter({ PAYLOAD_KEYS }: Pick<Config, 'PAYLOAD_KEYS'>) {
  return createDataConverter(PAYLOAD_KEYS);
}

/** What the server asks of Temporal, on one connection, which is made when it is needed. */
export function createTemporal({ TASK_QUEUE, PAYLOAD_KEYS }: Config) {
  const client = openTemporal(PAYLOAD_KEYS);
  const bounded = createBoundedCalls(client);
  return {
    workflows: createRunWorkflows(client, TASK_QUEUE, bounded),
    namespace: client.options.namespace,
    schedules: createSchedules(client, TASK_QUEUE, bounded),
    payloadKey: readNewestKeyId(PAYLOAD_KEYS),
    /** Rejects when Temporal does not answer within 10 s. */
    answers: () => connectionOf(client).ensureConnected(),
    registerSearchAttributes: () =>
      addMissingSearchAttributes(connectionOf(client), client.options.namespace),
    close: () => client.connection.close(),
  };
}
