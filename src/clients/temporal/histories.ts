/**
 * Lists and deletes the histories that Temporal keeps of runs and ladders. One query of the visibility store, which
 * may lag behind, lists their state.
 *
 * Deleting a workflow id deletes its open history, those that it was continued from, and the workflows below it, whose
 * ids begin with its own; deleting a schedule deletes its starts. Temporal takes a moment to delete, for a workflow that
 * has just ended a minute, and its list may lag behind, so the newest history is also asked for by its id.
 */
import type { Client } from '@temporalio/client';
import { optionalTsToDate } from '@temporalio/common/lib/time.js';
import { type Bounded, connectionOf, hasStatus } from './connection.ts';

interface ErasingClient {
  readonly client: Client;
  readonly bounded: Bounded;
}

interface History {
  readonly workflowId: string;
  readonly runId: string;
}

interface Wanted {
  /** Asked for even when the list lacks them. */
  readonly workflowIds: readonly string[];
  readonly query: string;
}

async function whenFound(call: () => Promise<unknown>): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (error) {
    if (hasStatus(error, 'notFound')) return false;
    throw error;
  }
}

function quote(text: string): string {
  return text.replaceAll(/['\\]/g, '\\$&');
}

async function listHistories({ client, bounded }: ErasingClient, query: string): Promise<History[]> {
  const { workflowService } = connectionOf(client);
  const request = { namespace: client.options.namespace, query, pageSize: 1_000 };
  const { executions } = await bounded(() => workflowService.listWorkflowExecutions(request));
  return (executions ?? []).map(({ execution }) => ({
    workflowId: execution?.workflowId ?? '',
    runId: execution?.runId ?? '',
  }));
}

/** @returns whether nothing is left of it, as far as Temporal reports */
async function eraseFound(erasing: ErasingClient, { workflowIds, query }: Wanted): Promise<boolean> {
  const { client, bounded } = erasing;
  const { workflowService } = connectionOf(client);
  const { namespace } = client.options;
  const listed = await listHistories(erasing, query);
  let isEmpty = listed.length === 0;
  for (const workflowExecution of [
    ...workflowIds.map((workflowId) => ({ workflowId, runId: '' })),
    ...listed,
  ]) {
    const request = { namespace, workflowExecution };
    if (await whenFound(() => bounded(() => workflowService.deleteWorkflowExecution(request))))
      isEmpty = false;
  }
  return isEmpty;
}

/** @returns whether nothing is left of it, as far as Temporal reports */
export function eraseHistories(erasing: ErasingClient, workflowId: string): Promise<boolean> {
  const id = quote(workflowId);
  const query = `WorkflowId = '${id}' OR WorkflowId STARTS_WITH '${id}/'`;
  return eraseFound(erasing, { workflowIds: [workflowId], query });
}

/**
 * Deletes the histories of a schedule that was removed. The workflow by which Temporal kept it is deleted too, without
 * waiting: it may stay, closed, as long as Temporal keeps closed workflows.
 * @returns the same as for a workflow, for its starts
 */
export async function eraseScheduleHistories(erasing: ErasingClient, workflowId: string): Promise<boolean> {
  const { client, bounded } = erasing;
  const request = {
    namespace: client.options.namespace,
    workflowExecution: { workflowId: `temporal-sys-scheduler:${workflowId}`, runId: '' },
  };
  const { workflowService } = connectionOf(client);
  await whenFound(() => bounded(() => workflowService.deleteWorkflowExecution(request)));
  const query = `WorkflowId STARTS_WITH '${quote(workflowId)}-'`;
  return eraseFound(erasing, { workflowIds: [], query });
}

/** Runs that the list still names. @returns as of a workflow */
export function eraseProjectHistories(erasing: ErasingClient, projectId: string): Promise<boolean> {
  return eraseFound(erasing, { workflowIds: [], query: `ProjectId = '${quote(projectId)}'` });
}

/** A workflow task that Temporal repeats because it fails, and since when. */
export interface TaskFault {
  readonly message: string;
  readonly since: Date;
}

/** A task may fail once or twice where workers change. */
const fewestAttempts = 3;

/** Null: its task, if there is one, does not fail. */
export async function findTaskFault(
  { client, bounded }: ErasingClient,
  workflowId: string,
): Promise<TaskFault | null> {
  const { workflowService } = connectionOf(client);
  const execution = { namespace: client.options.namespace, execution: { workflowId } };
  const seen = await bounded(() => workflowService.describeWorkflowExecution(execution));
  if ((seen.pendingWorkflowTask?.attempt ?? 0) < fewestAttempts) return null;
  const request = { ...execution, maximumPageSize: 5 };
  const { history } = await bounded(() => workflowService.getWorkflowExecutionHistoryReverse(request));
  const last = history?.events?.find(({ workflowTaskFailedEventAttributes: failed }) => failed != null);
  const { message } = last?.workflowTaskFailedEventAttributes?.failure ?? {};
  return message == null ? null : { message, since: optionalTsToDate(last?.eventTime) ?? new Date() };
}

interface ListedRunsDependencies {
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
