/**
 * Deletes all histories of a workflow id: the one that goes on, those that it was continued from, and the workflows below
 * it, whose ids begin with its own. The list may lag behind, so the newest is asked for by its id as well.
 */
import { type Client, isGrpcServiceError } from '@temporalio/client';
import { type Bounded, connectionOf } from './bounded-calls.ts';

interface ErasingClient {
  readonly client: Client;
  readonly bounded: Bounded;
}

interface History {
  readonly workflowId: string;
  readonly runId: string;
}

/** gRPC: there is none. */
const notFound = 5;

async function whenFound(call: () => Promise<unknown>): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (error) {
    if (isGrpcServiceError(error) && Number(error.code) === notFound) return false;
    throw error;
  }
}

async function listHistories({ client, bounded }: ErasingClient, workflowId: string): Promise<History[]> {
  const { workflowService } = connectionOf(client);
  const quoted = workflowId.replaceAll(/['\\]/g, '\\$&');
  const request = {
    namespace: client.options.namespace,
    query: `WorkflowId = '${quoted}' OR WorkflowId STARTS_WITH '${quoted}/'`,
    pageSize: 1_000,
  };
  const { executions } = await bounded(() => workflowService.listWorkflowExecutions(request));
  return (executions ?? []).map(({ execution }) => ({
    workflowId: execution?.workflowId ?? '',
    runId: execution?.runId ?? '',
  }));
}

/** @returns whether nothing is left of it, as far as Temporal tells; deleting takes it a moment */
export async function eraseHistories(erasing: ErasingClient, workflowId: string): Promise<boolean> {
  const { client, bounded } = erasing;
  const { workflowService } = connectionOf(client);
  const { namespace } = client.options;
  const found = [{ workflowId, runId: '' }, ...(await listHistories(erasing, workflowId))];
  let isEmpty = true;
  for (const workflowExecution of found) {
    const request = { namespace, workflowExecution };
    if (await whenFound(() => bounded(() => workflowService.deleteWorkflowExecution(request))))
      isEmpty = false;
  }
  return isEmpty && found.length === 1;
}
