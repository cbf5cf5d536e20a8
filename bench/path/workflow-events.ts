/** When Temporal has written what, by its own history of a run. */
import type { Client, WorkflowHandle } from '@temporalio/client';

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
type Event = NonNullable<History['events']>[number];

/** Events are known by the attributes that they have. */
type Kind = keyof Event & `${string}EventAttributes`;

/** Unix times in milliseconds, in the order of the history. */
export type ReadTimes = (kind: Kind) => readonly number[];

function toMs({ eventTime }: Event): number {
  return Number(eventTime?.seconds) * 1_000 + Number(eventTime?.nanos ?? 0) / 1_000_000;
}

export async function readWorkflowEvents(client: Client, workflowId: string): Promise<ReadTimes> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  return (kind) => (events ?? []).filter((event) => event[kind] != null).map(toMs);
}
