/**
 * Starts and cancels the workflows of runs. Both may be repeated: a second start meets the first one, a cancel of
 * a workflow that has ended is nothing.
 */
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdConflictPolicy,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from '@temporalio/common';
import type { Priority } from '../../contracts/primitives.ts';
import { searchAttributes } from '../../core/run/search-attributes.ts';
import type { RunPipelineInput } from '../../core/run/workflow-input.ts';

export interface RunWorkflows {
  start(input: RunPipelineInput, priority: Priority): Promise<void>;
  cancel(projectId: string, runId: string): Promise<void>;
  /** Whether the server knows every search attribute of runs. */
  hasSearchAttributes(): Promise<boolean>;
  isReachable(): Promise<boolean>;
}

const priorityKeys: Record<Priority, number> = { interactive: 1, standard: 3, batch: 5 };

const keyword = (name: string) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);

export const workflowIdOf = (projectId: string, runId: string): string => `run/${projectId}/${runId}`;

export const createRunWorkflows = (client: Client, taskQueue: string): RunWorkflows => ({
  start: async (input, priority) => {
    const { project_id, run_id, pipeline, version } = input;
    try {
      await client.workflow.start('runPipeline', {
        taskQueue,
        args: [input],
        workflowId: workflowIdOf(project_id, run_id),
        workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
        workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
        workflowExecutionTimeout: '7 days',
        staticSummary: `${pipeline} ${version}`,
        staticDetails: `[Run ${run_id}](${input.run_url})`,
        priority: { priorityKey: priorityKeys[priority], fairnessKey: project_id },
        ...(input.has_search_attributes ? { typedSearchAttributes: searchable(input) } : {}),
      });
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  },
  cancel: async (projectId, runId) => {
    try {
      await client.workflow.getHandle(workflowIdOf(projectId, runId)).cancel();
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    }
  },
  hasSearchAttributes: async () => {
    const { customAttributes } = await client.connection.operatorService.listSearchAttributes({
      namespace: client.options.namespace,
    });
    return Object.keys(searchAttributes).every((name) => name in (customAttributes ?? {}));
  },
  isReachable: async () => {
    try {
      await client.connection.withDeadline(Date.now() + 2_000, () =>
        client.connection.workflowService.getSystemInfo({}),
      );
      return true;
    } catch {
      return false;
    }
  },
});

const searchable = ({ pipeline, version, project_id }: RunPipelineInput): TypedSearchAttributes =>
  new TypedSearchAttributes([
    { key: keyword('PipelineName'), value: pipeline },
    { key: keyword('PipelineVersion'), value: version },
    { key: keyword('ProjectId'), value: project_id },
    { key: keyword('RunPhase'), value: 'running' },
  ]);
