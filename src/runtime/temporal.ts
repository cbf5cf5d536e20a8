import { connectionOf, createBoundedCalls } from '../clients/temporal/bounded-calls.ts';
import { connectTemporal } from '../clients/temporal/connect.ts';
import { createDataConverter } from '../clients/temporal/data-converter.ts';
import { createRunWorkflows } from '../clients/temporal/run-workflows.ts';
import { createSchedules } from '../clients/temporal/schedules.ts';
import { addMissingSearchAttributes } from '../clients/temporal/search-attributes.ts';
import type { Config } from '../config.ts';

export type Temporal = Awaited<ReturnType<typeof createTemporal>>;

/** For a worker; clients make theirs. @throws Error that says which key is wrong */
export function readDataConverter({ PAYLOAD_KEYS }: Pick<Config, 'PAYLOAD_KEYS'>) {
  return createDataConverter(PAYLOAD_KEYS);
}

/** What the server asks of Temporal, on one connection. */
export async function createTemporal({ TASK_QUEUE, PAYLOAD_KEYS }: Config) {
  const client = await connectTemporal(PAYLOAD_KEYS);
  const bounded = createBoundedCalls(client);
  return {
    workflows: createRunWorkflows(client, TASK_QUEUE, bounded),
    namespace: client.options.namespace,
    schedules: createSchedules(client, TASK_QUEUE, bounded),
    registerSearchAttributes: () =>
      addMissingSearchAttributes(connectionOf(client), client.options.namespace),
    close: () => client.connection.close(),
  };
}
