/** Runs of plans on the real Temporal, with a worker in this process whose activities follow a script. */
import { randomBytes } from 'node:crypto';
import type { Failure } from '@capstan/core/contracts/primitives';
import type { AnswerVerdict } from '@capstan/core/run/drive';
import type { StepVerdict } from '@capstan/core/run/machine';
import type { RunPlan } from '@capstan/core/run/plan';
import { runWorkflowId } from '@capstan/core/workflow-names';
import type { RunPipelineInput, RunPipelineResult } from '@capstan/core/workflow-payloads';
import { engineVersion } from '@capstan/core/workflow-payloads';
import type { Client, WorkflowHandle } from '@temporalio/client';
import type { Duration } from '@temporalio/common';
import { Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { inject } from 'vitest';
import type { Activities } from '../../src/activities/create-activities.ts';
import type {
  InlineEnd,
  StepActivityDone,
  StepActivityResult,
} from '../../src/activities/step-activities.ts';
import { nameEnds } from '../../src/activities/step-activities.ts';
import type { StepItemKey } from '../../src/db/attempt/attempt.ts';
import type { runPipeline } from '../../src/workflows/run-pipeline.ts';
import { replayHistories } from './replay-histories.ts';
import { connectTestEnvironment } from './temporal.ts';

export interface ScriptedCall {
  readonly run_id: string;
  readonly step_id: string;
  readonly item?: number;
  readonly resumed?: true;
  readonly again?: true;
  readonly paused_ms?: number;
}

/** The ends in the order of the units. */
export interface ScriptedBatchEnd {
  readonly ends: readonly InlineEnd[];
  readonly took_ms: number;
}

type ScriptedBatch = Parameters<Activities['executeInline']>[0];

export interface Script {
  /** May throw like an activity. @param times calls of the unit so far, 1 for the first */
  readonly execute: (call: ScriptedCall, times: number) => Promise<StepActivityResult> | StepActivityResult;
  /** The result of a batch. Default: all units have succeeded. */
  readonly executeInline?: (batch: ScriptedBatch) => Promise<ScriptedBatchEnd> | ScriptedBatchEnd;
  readonly decide?: (stepId: string) => StepVerdict | Promise<StepVerdict>;
  /** Default: each answer counts. */
  readonly judge?: (stepId: string, item: number) => AnswerVerdict;
  /** Called before ends that nothing else writes are recorded. */
  readonly record?: () => Promise<void>;
}

export interface Recorded {
  readonly calls: ScriptedCall[];
  readonly batches: ScriptedBatch[];
  readonly changes: { readonly step_id: string; readonly item: number; readonly state: string }[];
  closing: { outcome: RunPipelineResult['outcome']; error: Failure | null } | null;
}

export interface ScriptedRun {
  readonly handle: WorkflowHandle<typeof runPipeline>;
  readonly recorded: Recorded;
  /** The outcome of the workflow, however it ended. */
  ended(): Promise<string>;
}

export interface StartWay {
  /** Sent before anything else. */
  readonly signal?: { readonly name: string; readonly value: object };
  readonly workflowTaskTimeout?: Duration;
}

export interface ScriptedRuns {
  readonly client: Client;
  readonly taskQueue: string;
  start(
    plan: RunPlan,
    script: Script,
    extra?: Partial<RunPipelineInput>,
    way?: StartWay,
  ): Promise<ScriptedRun>;
  /** Replays every history of runs that have ended. @throws Error where the workflow would now deviate */
  replay(...ended: readonly ScriptedRun[]): Promise<void>;
  /** Stops the worker and starts one with other workflows, which takes over its runs. */
  replaceWorker(workflowBundle: WorkflowBundleOption): Promise<void>;
  stop(): Promise<void>;
}

export const succeeded: StepActivityDone = { endpoint: 'http://one', cost_usd: 0, duration_ms: 1 };

/** @param remembered number of runs in a worker's cache; others are replayed from their beginning, as after a crash */
export async function startScriptedRuns(remembered?: number): Promise<ScriptedRuns> {
  const taskQueue = `scripted-${randomBytes(6).toString('hex')}`;
  const environment = await connectTestEnvironment();
  const { client, nativeConnection: connection } = environment;
  const scripts = new Map<string, { readonly script: Script; readonly recorded: Recorded }>();
  const of = (runId: string) => {
    const known = scripts.get(runId);
    if (known === undefined) throw new Error(`no script for ${runId}`);
    return known;
  };
  const startWorker = async (workflowBundle: WorkflowBundleOption) => {
    const memory = remembered === undefined ? {} : { maxCachedWorkflows: remembered };
    const worker = await Worker.create({ connection, taskQueue, workflowBundle, activities, ...memory });
    const working = worker.run();
    return async (): Promise<void> => {
      worker.shutdown();
      await working;
    };
  };
  const activities = {
    executeStep: async (call: ScriptedCall) => {
      const { script, recorded } = of(call.run_id);
      recorded.calls.push(call);
      const isSame = ({ step_id, item }: ScriptedCall) => step_id === call.step_id && item === call.item;
      return script.execute(call, recorded.calls.filter(isSame).length);
    },
    executeInline: async (batch: ScriptedBatch) => {
      const { script, recorded } = of(batch.run_id);
      recorded.batches.push(batch);
      const { ends, took_ms } = (await script.executeInline?.(batch)) ?? {
        ends: batch.units.map(() => succeeded),
        took_ms: 1,
      };
      return { ends: nameEnds(batch.units, ends), took_ms };
    },
    decideSteps: async ({ run_id, step_ids }: { run_id: string; step_ids: string[] }) =>
      Promise.all(step_ids.map((id) => of(run_id).script.decide?.(id) ?? { type: 'go' })),
    judgeAnswer: async ({ run_id, step_id, item }: StepItemKey) =>
      of(run_id).script.judge?.(step_id, item) ?? { counts: true },
    recordProgress: async ({ run_id, changes }: { run_id: string; changes: Recorded['changes'] }) => {
      await of(run_id).script.record?.();
      of(run_id).recorded.changes.push(...changes);
    },
    finishRun: async (closing: { run_id: string } & NonNullable<Recorded['closing']>) => {
      const { run_id, outcome, error } = closing;
      of(run_id).recorded.closing = { outcome, error };
      return { run_id, outcome, error };
    },
  };
  let stopWorker = await startWorker({ codePath: inject('workflowBundle') });

  return {
    client,
    taskQueue,
    start: async (plan, script, extra = {}, way = {}) => {
      const run_id = `run_${randomBytes(8).toString('hex')}`;
      const recorded: Recorded = { calls: [], batches: [], changes: [], closing: null };
      scripts.set(run_id, { script, recorded });
      const input: RunPipelineInput = {
        engine_version: engineVersion,
        run_id,
        project_id: 'prj',
        pipeline: 'scripted',
        version: '1',
        plan,
        timeout_ms: null,
        heartbeat_timeout_ms: 30_000,
        has_search_attributes: false,
        run_url: 'http://run',
        dispatch_reasons: [],
        ...extra,
      };
      const { signal, ...timeouts } = way;
      const options = {
        taskQueue,
        args: [input] as [RunPipelineInput],
        workflowId: runWorkflowId(input),
        ...timeouts,
      };
      const handle =
        signal === undefined
          ? await client.workflow.start<typeof runPipeline>('runPipeline', options)
          : await client.workflow.signalWithStart<typeof runPipeline, [object]>('runPipeline', {
              ...options,
              signal: signal.name,
              signalArgs: [signal.value],
            });
      const ended = async (): Promise<string> => {
        await handle.result().catch(() => undefined);
        return recorded.closing?.outcome ?? 'not closed';
      };
      return { handle, recorded, ended };
    },
    replay: async (...ended) => {
      const histories = readHistories(
        client,
        ended.map(({ handle }) => handle.workflowId),
      );
      const errors = await replayHistories({ codePath: inject('workflowBundle') }, histories);
      if (errors.length < ended.length) throw new Error(`${errors.length} histories of ${ended.length} runs`);
      for (const error of errors) if (error !== null) throw error;
    },
    replaceWorker: async (workflowBundle) => {
      await stopWorker();
      stopWorker = await startWorker(workflowBundle);
    },
    stop: async () => {
      await stopWorker();
      await environment.teardown();
    },
  };
}

async function* readHistories(client: Client, workflowIds: readonly string[]) {
  for (const workflowId of workflowIds) {
    for await (const { runId } of client.workflow.list({ query: `WorkflowId = "${workflowId}"` })) {
      yield { workflowId, history: await client.workflow.getHandle(workflowId, runId).fetchHistory() };
    }
  }
}

/** The length of each history of a workflow, the first one first. */
export async function historyLengths(client: Client, workflowId: string): Promise<number[]> {
  const lengths: number[] = [];
  for await (const { runId } of client.workflow.list({ query: `WorkflowId = "${workflowId}"` })) {
    const { historyLength } = await client.workflow.getHandle(workflowId, runId).describe();
    lengths.unshift(historyLength);
  }
  return lengths;
}
