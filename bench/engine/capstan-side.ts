/**
 * Submits runs over HTTP and waits for their end in the database. The end is the run's own `finished_at`: what a
 * user is told, written before the workflow closes. Two sides of each checkout: steps through the task queue, and inline ones.
 */
import type { Client } from '@temporalio/client';
import { findRunWorkflow } from '../shared/run-workflow-id.ts';
import { capabilityName } from './capability-process.ts';
import type { CapstanApi } from './capstan-api.ts';
import { checkResult } from './check-result.ts';
import { followRun } from './event-delays.ts';
import type { RunEnds } from './run-ends.ts';
import { dispatchShape, latencyShapes, loadShape, makeText, type Shape } from './shapes.ts';
import type { Side, SideName } from './side.ts';

export type Variant = 'queued' | 'inline';

function pipelineName(variant: Variant, { kind, steps }: Shape): string {
  return `bench-${variant}-${kind}-${steps}`;
}

function describePipeline(variant: Variant, shape: Shape) {
  return {
    pipeline: pipelineName(variant, shape),
    version: '1.0.0',
    steps: Array.from({ length: shape.steps }, (_, index) => ({
      id: `s${index}`,
      capability: capabilityName,
      dispatch: variant,
      input: {
        n: shape.kind === 'parallel' || index === 0 ? index : `{{ steps.s${index - 1}.output.n }}`,
        text: '{{ job.text }}',
      },
    })),
  };
}

/** A run's output has the outputs of its last steps by id. */
function toResult({ kind, steps }: Shape, output: Readonly<Record<string, unknown>> | null): unknown {
  return kind === 'parallel'
    ? Array.from({ length: steps }, (_, index) => output?.[`s${index}`])
    : output?.[`s${steps - 1}`];
}

/** @returns the run's id */
async function startRun(
  { post }: CapstanApi,
  shape: Shape,
  { variant, text }: { readonly variant: Variant; readonly text: string },
): Promise<string> {
  const { run_id = '' } = await post('/v1/runs', { pipeline: pipelineName(variant, shape), job: { text } });
  return run_id;
}

interface CapstanContext {
  readonly name: SideName;
  readonly variant: Variant;
  /** Names of its processes. */
  readonly processes: readonly string[];
  readonly api: CapstanApi;
  readonly client: Client;
  readonly ends: RunEnds;
}

/** Stores the pipelines. Steps are inline only where one comes after the other. */
export async function createCapstanSide(context: CapstanContext): Promise<Side> {
  const { name, variant, processes, api, client, ends } = context;
  const takes = ({ kind }: Shape) => variant === 'queued' || kind === 'sequential';
  for (const shape of [...latencyShapes, loadShape].filter(takes)) {
    await api.post('/v1/pipelines', describePipeline(variant, shape));
  }
  let last = { runId: '', projectId: '', pipeline: '' };

  const finish = async (shape: Shape, text: string): Promise<number> => {
    const runId = await startRun(api, shape, { variant, text });
    const { projectId, pipeline, state, finishedAtMs, output } = await ends.wait(runId);
    if (state !== 'succeeded') throw new Error(`run ${runId} has ${state}`);
    checkResult(shape, text, toResult(shape, output));
    last = { runId, projectId, pipeline };
    return finishedAtMs;
  };

  return {
    name,
    parts: ['Temporal', 'Postgres', 'capability', ...processes],
    takes,
    run: async (shape, text) => void (await finish(shape, text)),
    time: async (shape, text) => {
      const startedAt = Date.now();
      return (await finish(shape, text)) - startedAt;
    },
    countHistory: async () => {
      const workflow = client.workflow.getHandle(await findRunWorkflow(client, last));
      return (await workflow.describe()).historyLength;
    },
    follow:
      variant === 'inline'
        ? null
        : async () => followRun(api, await startRun(api, dispatchShape, { variant, text: makeText() })),
  };
}
