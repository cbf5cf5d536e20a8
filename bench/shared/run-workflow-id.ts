import { runWorkflowId } from '@capstan/core/workflow-names';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';

export interface EndedRun {
  readonly runId: string;
  readonly projectId: string;
  readonly pipeline: string;
}

/** The workflow of a run, also of one that an older checkout has started, which named it otherwise. */
export async function findRunWorkflow(
  client: Client,
  { runId, projectId, pipeline }: EndedRun,
): Promise<string> {
  const id = runWorkflowId({ pipeline, run_id: runId });
  try {
    await client.workflow.getHandle(id).describe();
    return id;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return `run/${projectId}/${runId}`;
    throw error;
  }
}
