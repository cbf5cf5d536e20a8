import { createBoundedCalls } from '../clients/temporal/bounded-calls.ts';
import { connectTemporal } from '../clients/temporal/connect.ts';
import { createRunWorkflows } from '../clients/temporal/run-workflows.ts';
import { createSchedules } from '../clients/temporal/schedules.ts';
import type { Config } from '../config.ts';

export type Temporal = Awaited<ReturnType<typeof createTemporal>>;

/** What the server asks of Temporal, on one connection. */
export async function createTemporal({ TASK_QUEUE }: Config) {
  const client = await connectTemporal();
  const bounded = createBoundedCalls(client);
  return {
    workflows: createRunWorkflows(client, TASK_QUEUE, bounded),
    namespace: client.options.namespace,
    schedules: createSchedules(client, TASK_QUEUE, bounded),
    close: () => client.connection.close(),
  };
}
