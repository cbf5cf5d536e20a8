/**
 * Starts, cancels and tells the workflows of runs and of ladders by themselves. All may be repeated: a second start
 * meets the first one, a cancel of a workflow that has ended is nothing, a signal says which review it is about.
 */
import {
  type Client,
  type Connection,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdConflictPolicy,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from '@temporalio/common';
import type { Priority } from '../../contracts/primitives.ts';
import type { EscalateInput, ReviewedSignal } from '../../core/run/escalate-input.ts';
import { searchAttributes } from '../../core/run/search-attributes.ts';
import type { RunPipelineInput } from '../../core/run/workflow-input.ts';

/** Who waits for a review: a run, or a ladder by itself. */
export type WaitingWorkflow =
  | { readonly project_id: string; readonly run_id: string }
  | { readonly project_id: string; readonly escalation_id: string };

export interface RunWorkflows {
  start(input: RunPipelineInput, priority: Priority): Promise<void>;
  /** gone: there is no workflow that could be cancelled. */
  cancel(projectId: string, runId: string): Promise<'asked' | 'gone'>;
  /** Of a ladder by itself; that of a step is started by its run. */
  startEscalation(projectId: string, input: EscalateInput): Promise<void>;
  /** gone: there is no workflow that waits. */
  signalReviewed(waiting: WaitingWorkflow, review: ReviewedSignal): Promise<'sent' | 'gone'>;
  /** Whether the server knows every search attribute of runs. */
  hasSearchAttributes(): Promise<boolean>;
  isReachable(): Promise<boolean>;
}

const priorityKeys: Record<Priority, number> = { interactive: 1, standard: 3, batch: 5 };

const keyword = (name: string) => defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);

export const workflowIdOf = (projectId: string, runId: string): string => `run/${projectId}/${runId}`;

const escalationWorkflowId = (projectId: string, escalationId: string): string =>
  `esc/${projectId}/${escalationId}`;

const waitingId = (waiting: WaitingWorkflow): string =>
  'run_id' in waiting
    ? workflowIdOf(waiting.project_id, waiting.run_id)
    : escalationWorkflowId(waiting.project_id, waiting.escalation_id);

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

  /** A second start under the same id is the first one. */
  const startOnce = async (type: string, options: WorkflowStartOptions): Promise<void> => {
    try {
      await bounded(() =>
        client.workflow.start(type, {
          ...options,
          workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
          workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
          workflowExecutionTimeout: backstop,
        }),
      );
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  };

  /** @returns whether there was a workflow */
  const reach = async (call: () => Promise<unknown>): Promise<boolean> => {
    try {
      await bounded(call);
      return true;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return false;
      throw error;
    }
  };

  return {
    start: async (input, priority) => {
      const { project_id, run_id, pipeline, version } = input;
      await startOnce('runPipeline', {
        taskQueue,
        args: [input],
        workflowId: workflowIdOf(project_id, run_id),
        staticSummary: `${pipeline} ${version}`,
        staticDetails: `[Run ${run_id}](${input.run_url})`,
        priority: { priorityKey: priorityKeys[priority], fairnessKey: project_id },
        ...(input.has_search_attributes ? { typedSearchAttributes: searchable(input) } : {}),
      });
    },
    cancel: async (projectId, runId) => {
      const found = await reach(() => client.workflow.getHandle(workflowIdOf(projectId, runId)).cancel());
      return found ? 'asked' : 'gone';
    },
    startEscalation: (projectId, input) =>
      startOnce('escalate', {
        taskQueue,
        args: [input],
        workflowId: escalationWorkflowId(projectId, input.escalation_id),
        staticSummary: 'escalation',
        staticDetails: `[Escalation ${input.escalation_id}](${input.url})`,
        priority: { priorityKey: priorityKeys.standard, fairnessKey: projectId },
      }),
    signalReviewed: async (waiting, review) => {
      const found = await reach(() =>
        client.workflow.getHandle(waitingId(waiting)).signal('reviewed', review),
      );
      return found ? 'sent' : 'gone';
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
