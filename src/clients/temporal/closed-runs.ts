/** Runs and ladders by the state of their workflows, each by one query of the visibility store. It may lag behind. */
import type { Client } from '@temporalio/client';
import type { Bounded } from './bounded-calls.ts';
import { connectionOf } from './bounded-calls.ts';

export interface ListedRunsDependencies {
  readonly client: Client;
  readonly bounded: Bounded;
  readonly taskQueue: string;
}

/** `<pipeline>/<run_id>`, or `ladder/<escalation_id>` */
function idOf(workflowId: string): string {
  return workflowId.slice(workflowId.lastIndexOf('/') + 1);
}

/** Those that ended otherwise than by success. @param since the end of the workflow */
export function listClosedRuns(dependencies: ListedRunsDependencies, since: Date): AsyncIterable<string> {
  return list(dependencies, [
    isRun,
    `ExecutionStatus IN ('Terminated', 'TimedOut', 'Failed', 'Canceled')`,
    `CloseTime >= '${since.toISOString()}'`,
  ]);
}

export function listRunningRuns(dependencies: ListedRunsDependencies): AsyncIterable<string> {
  return list(dependencies, [isRun, isRunning]);
}

/** Those by themselves: a step's has the workflow of its run above it. */
export function listRunningLadders(dependencies: ListedRunsDependencies): AsyncIterable<string> {
  return list(dependencies, [`WorkflowType = 'escalate'`, `WorkflowId STARTS_WITH 'ladder/'`, isRunning]);
}

const isRun = `WorkflowType = 'runPipeline'`;
const isRunning = `ExecutionStatus = 'Running'`;

async function* list(
  { client, bounded, taskQueue }: ListedRunsDependencies,
  conditions: readonly string[],
): AsyncGenerator<string, void, undefined> {
  const { workflowService } = connectionOf(client);
  const query = [`TaskQueue = '${taskQueue.replaceAll(/['\\]/g, '\\$&')}'`, ...conditions].join(' AND ');
  let nextPageToken: Uint8Array = new Uint8Array();
  do {
    const request = { namespace: client.options.namespace, query, pageSize: 1_000, nextPageToken };
    const page = await bounded(() => workflowService.listWorkflowExecutions(request));
    for (const { execution } of page.executions ?? []) yield idOf(execution?.workflowId ?? '');
    nextPageToken = page.nextPageToken ?? new Uint8Array();
  } while (nextPageToken.length > 0);
}
