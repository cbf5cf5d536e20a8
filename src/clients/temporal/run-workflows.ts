/**
 * Starts and cancels the workflows of runs. Both may be repeated: a second start meets the first one, a cancel of
 * a workflow that has ended is nothing.
 */
import {
  type Client,
  type Connection,
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
  /** gone: there is no workflow that could be cancelled. */
  cancel(projectId: string, runId: string): Promise<'asked' | 'gone'>;
  /** Whether the server knows every search attribute of runs. */
  hasSearchAttributes(): Promise<boolean>;
  isReachable(): Promise<boolean>;
}

const priorityKeys: Record<Priority, number> = { interactive: 1, standard: 3, batch: 5 };

const keyword = (name: string) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);

export const workflowIdOf = (projectId: string, runId: string): string => `run/${projectId}/${runId}`;

/** Longer than any timeout of a run, so that a run ends by its own rules. */
const backstop = '30 days';
const answerMs = 10_000;

export const createRunWorkflows = (client: Client, taskQueue: string): RunWorkflows => {
  const { connection } = client as Client & { readonly connection: Connection };
  let open = 0;

  /**
   * A server that takes the connection and answers nothing is as good as away. The deadline travels in a storage that,
   * once in use, makes Node follow every promise of the process; it is put down when no call is under way.
   */
  const bounded = async <Result>(call: () => Promise<Result>, ms = answerMs): Promise<Result> => {
    open += 1;
    try {
      return await connection.withDeadline(Date.now() + ms, call);
    } finally {
      open -= 1;
      if (open === 0) connection.callContextStorage.disable();
    }
  };

  return {
    start: async (input, priority) => {
      const { project_id, run_id, pipeline, version } = input;
      const options = {
        taskQueue,
        args: [input],
        workflowId: workflowIdOf(project_id, run_id),
        workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
        workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
        workflowExecutionTimeout: backstop,
        staticSummary: `${pipeline} ${version}`,
        staticDetails: `[Run ${run_id}](${input.run_url})`,
        priority: { priorityKey: priorityKeys[priority], fairnessKey: project_id },
        ...(input.has_search_attributes ? { typedSearchAttributes: searchable(input) } : {}),
      } as const;
      try {
        await bounded(() => client.workflow.start('runPipeline', options));
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      }
    },
    cancel: async (projectId, runId) => {
      try {
        await bounded(() => client.workflow.getHandle(workflowIdOf(projectId, runId)).cancel());
        return 'asked';
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return 'gone';
        throw error;
      }
    },
    hasSearchAttributes: async () => {
      const { namespace } = client.options;
      const { customAttributes } = await bounded(() =>
        connection.operatorService.listSearchAttributes({ namespace }),
      );
      return Object.keys(searchAttributes).every((name) => name in (customAttributes ?? {}));
    },
    isReachable: () =>
      bounded(() => connection.workflowService.getSystemInfo({}), 2_000).then(
        () => true,
        () => false,
      ),
  };
};

const searchable = ({ pipeline, version, project_id }: RunPipelineInput): TypedSearchAttributes =>
  new TypedSearchAttributes([
    { key: keyword('PipelineName'), value: pipeline },
    { key: keyword('PipelineVersion'), value: version },
    { key: keyword('ProjectId'), value: project_id },
    { key: keyword('RunPhase'), value: 'running' },
  ]);
