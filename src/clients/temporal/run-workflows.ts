/**
 * Starts, ends and signals the workflows of runs and of ladders of their own. All may be repeated: a second start meets
 * the first one, a cancel of a workflow that has ended is nothing, a signal names its subject.
 */

import type { Priority } from '@capstan/core/contracts/primitives';
import { aloneWorkflowId, type RunRef, runWorkflowId, toSummary } from '@capstan/core/workflow-names';
import type {
  ControlSignal,
  EscalateInput,
  ReviewedSignal,
  RunPipelineInput,
  WokenSignal,
} from '@capstan/core/workflow-payloads';
import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowHandle,
  WorkflowIdConflictPolicy,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType, TypedSearchAttributes } from '@temporalio/common';
import { type Bounded, connectionOf, createBoundedCalls, hasStatus } from './connection.ts';
import {
  eraseHistories,
  eraseProjectHistories,
  eraseScheduleHistories,
  findTaskFault,
  listClosedRuns,
  listRunningLadders,
  listRunningRuns,
  type TaskFault,
} from './histories.ts';
import { createSearchability } from './search-attributes.ts';

/** Whose ladder by itself it is, and of what. */
export interface LadderOwner {
  readonly project_id: string;
  readonly job_type: string;
}

/** The workflow that waits for a review: that of a run, or of a ladder by itself. */
export type WaitingWorkflow = RunRef | { readonly escalation_id: string };

export interface RunWorkflows {
  /** @param control what people have asked of it meanwhile, which it learns before it begins */
  start(input: RunPipelineInput, priority: Priority, control: ControlSignal | null): Promise<void>;
  /** gone: there is no workflow that could be cancelled. */
  cancel(run: RunRef): Promise<'asked' | 'gone'>;
  /** Terminates it, without a word to it. gone: it has ended already. */
  terminate(run: RunRef, reason: string): Promise<'ended' | 'gone'>;
  /** gone: it has ended. */
  signalControl(run: RunRef, control: ControlSignal): Promise<'sent' | 'gone'>;
  /** Signals that the wait of a unit may be over, or that the run which another workflow waits for has ended. */
  signalWoken(workflowId: string, woken: WokenSignal): Promise<'sent' | 'gone'>;
  /** Ids of runs whose workflows ended otherwise than by success since then; some may be listed twice. */
  listClosed(since: Date): AsyncIterable<string>;
  /** Ids of runs whose workflows are open, as far as the visibility store knows. */
  listRunning(): AsyncIterable<string>;
  /** The same of ladders by themselves. */
  listRunningLadders(): AsyncIterable<string>;
  /** Whether Temporal knows no workflow of it, neither an open nor a closed one. */
  isForgotten(work: WaitingWorkflow): Promise<boolean>;
  /** Whether the run has an open workflow. */
  isOpen(run: RunRef): Promise<boolean>;
  /** Why its workflow cannot make progress: the failure of a task that Temporal repeats; null: it can, or there is none. */
  findTaskFault(run: RunRef): Promise<TaskFault | null>;
  /**
   * Deletes what Temporal keeps of the run, its ladders included, and first terminates it. @returns false: there is
   * more
   */
  erase(run: RunRef): Promise<boolean>;
  /** The same of a ladder by itself. */
  eraseLadder(escalationId: string): Promise<boolean>;
  /** The same of one start of a schedule. */
  eraseStart(workflowId: string): Promise<boolean>;
  /** The same of all starts of a schedule that was removed. */
  eraseSchedule(workflowId: string): Promise<boolean>;
  /** The same of runs of a project that are unknown here, where they can be searched for. */
  eraseProject(projectId: string): Promise<boolean>;
  /** Starts a ladder by itself; that of a step is started by its run. */
  startEscalation(of: LadderOwner, input: EscalateInput): Promise<void>;
  /** gone: there is no workflow that waits. */
  signalReviewed(waiting: WaitingWorkflow, review: ReviewedSignal): Promise<'sent' | 'gone'>;
  /** Whether the server knows every search attribute. */
  hasSearchAttributes(): Promise<boolean>;
  isReachable(): Promise<boolean>;
}

const priorityKeys: Record<Priority, number> = { interactive: 1, standard: 3, batch: 5 };

function keyword(name: string) {
  return defineSearchAttributeKey(name, SearchAttributeType.KEYWORD);
}

function waitingId(waiting: WaitingWorkflow): string {
  return 'run_id' in waiting ? runWorkflowId(waiting) : aloneWorkflowId(waiting.escalation_id);
}

const runType = 'runPipeline';

/** @param bounded of the client's connection, shared by all who use it */
export function createRunWorkflows(
  client: Client,
  taskQueue: string,
  bounded: Bounded = createBoundedCalls(client),
): RunWorkflows {
  const isSearchable = createSearchability(connectionOf(client), client.options.namespace, bounded);
  const server: TemporalServer = { client, taskQueue, bounded, isSearchable };
  const questions = createQuestions(server);
  return {
    ...createStarts(server),
    ...createMessages(server),
    ...questions,
    findTaskFault: async (run) => {
      try {
        return await findTaskFault(server, runWorkflowId(run));
      } catch (error) {
        if (hasStatus(error, 'notFound')) return null;
        throw error;
      }
    },
    erase: (run) => eraseHistories(server, runWorkflowId(run)),
    eraseStart: (workflowId) => eraseHistories(server, workflowId),
    eraseSchedule: (workflowId) => eraseScheduleHistories(server, workflowId),
    eraseProject: async (projectId) =>
      !(await questions.hasSearchAttributes()) || eraseProjectHistories(server, projectId),
    eraseLadder: (escalationId) => eraseHistories(server, aloneWorkflowId(escalationId)),
  };
}

interface TemporalServer {
  readonly client: Client;
  readonly taskQueue: string;
  readonly bounded: Bounded;
  readonly isSearchable: () => Promise<boolean>;
}

function createStarts(server: TemporalServer): Pick<RunWorkflows, Starts> {
  const { client, taskQueue, bounded } = server;
  return {
    start: async (input, priority, control) => {
      const { project_id, run_id, pipeline, version } = input;
      const options = {
        ...onlyOne,
        taskQueue,
        args: [input],
        workflowId: runWorkflowId(input),
        staticSummary: toSummary(`${pipeline} ${version}`),
        staticDetails: `[Run ${run_id}](${input.run_url})`,
        priority: { priorityKey: priorityKeys[priority], fairnessKey: project_id },
        ...(input.has_search_attributes ? { typedSearchAttributes: searchableRun(input) } : {}),
      };
      await once(() =>
        bounded<unknown>(() =>
          control === null
            ? client.workflow.start(runType, options)
            : client.workflow.signalWithStart(runType, {
                ...options,
                signal: 'control',
                signalArgs: [control],
              }),
        ),
      );
    },
    startEscalation: (owner, input) => startLadder(server, owner, input),
  };
}

async function startLadder(
  { client, taskQueue, bounded, isSearchable }: TemporalServer,
  { project_id, job_type }: LadderOwner,
  input: EscalateInput,
): Promise<void> {
  const options: WorkflowStartOptions = {
    ...onlyOne,
    taskQueue,
    args: [input],
    workflowId: aloneWorkflowId(input.escalation_id),
    staticSummary: toSummary(`escalation of ${job_type}`),
    staticDetails: `[Escalation ${input.escalation_id}](${input.url})`,
    priority: { priorityKey: priorityKeys.standard, fairnessKey: project_id },
    ...((await isSearchable()) ? { typedSearchAttributes: searchableLadder(project_id) } : {}),
  };
  await once(() => bounded<unknown>(() => client.workflow.start('escalate', options)));
}

type Starts = 'start' | 'startEscalation';

/** No limit of Temporal's: a run may wait longer than any would allow. */
const onlyOne = {
  workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
  workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
} as const;

/** A second start under the same id is the first one. */
async function once(start: () => Promise<unknown>): Promise<void> {
  try {
    await start();
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

type Messages = 'cancel' | 'terminate' | 'signalControl' | 'signalWoken' | 'signalReviewed';

function createMessages({ client, bounded }: TemporalServer): Pick<RunWorkflows, Messages> {
  const tell = (workflowId: string, say: (handle: WorkflowHandle) => Promise<unknown>): Promise<boolean> =>
    isThere(() => bounded(() => say(client.workflow.getHandle(workflowId))));
  const signal = async (workflowId: string, name: string, value: object): Promise<'sent' | 'gone'> =>
    (await tell(workflowId, (handle) => handle.signal(name, value))) ? 'sent' : 'gone';
  return {
    cancel: async (run) => ((await tell(runWorkflowId(run), (handle) => handle.cancel())) ? 'asked' : 'gone'),
    terminate: async (run, reason) =>
      (await tell(runWorkflowId(run), (handle) => handle.terminate(reason))) ? 'ended' : 'gone',
    signalControl: (run, control) => signal(runWorkflowId(run), 'control', control),
    signalWoken: (workflowId, woken) => signal(workflowId, 'woken', woken),
    signalReviewed: (waiting, review) => signal(waitingId(waiting), 'reviewed', review),
  };
}

/** @returns whether there was a workflow to call */
async function isThere(call: () => Promise<unknown>): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

type Questions =
  | 'listClosed'
  | 'listRunning'
  | 'listRunningLadders'
  | 'isForgotten'
  | 'isOpen'
  | 'hasSearchAttributes'
  | 'isReachable';

function createQuestions({
  client,
  taskQueue,
  bounded,
  isSearchable,
}: TemporalServer): Pick<RunWorkflows, Questions> {
  const connection = connectionOf(client);
  return {
    listClosed: (since) => listClosedRuns({ client, bounded, taskQueue }, since),
    listRunning: () => listRunningRuns({ client, bounded, taskQueue }),
    listRunningLadders: () => listRunningLadders({ client, bounded, taskQueue }),
    isForgotten: async (work) =>
      !(await isThere(() => bounded(() => client.workflow.getHandle(waitingId(work)).describe()))),
    isOpen: async (run) => {
      let status = '';
      const handle = client.workflow.getHandle(runWorkflowId(run));
      const isFound = await isThere(async () => {
        status = (await bounded(() => handle.describe())).status.name;
      });
      return isFound && status === 'RUNNING';
    },
    hasSearchAttributes: isSearchable,
    isReachable: () =>
      bounded(() => connection.workflowService.getSystemInfo({}), 2_000).then(
        () => true,
        () => false,
      ),
  };
}

function searchableLadder(projectId: string): TypedSearchAttributes {
  return new TypedSearchAttributes([{ key: keyword('ProjectId'), value: projectId }]);
}

function searchableRun({ pipeline, version, project_id }: RunPipelineInput): TypedSearchAttributes {
  return new TypedSearchAttributes([
    { key: keyword('PipelineName'), value: pipeline },
    { key: keyword('PipelineVersion'), value: version },
    { key: keyword('ProjectId'), value: project_id },
    { key: keyword('RunPhase'), value: 'running' },
  ]);
}
