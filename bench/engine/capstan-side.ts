/**
 * Submits runs over HTTP and waits for their end in the database. The end is the run's own `finished_at`: the one that
 * a user sees, written before the workflow closes. Two sides of each checkout: pipelines that set nothing, and such as
 * ask for the task queue.
 */
import type { Client } from '@temporalio/client';
import { findRunWorkflow } from '../shared/run-workflow-id.ts';
import { capabilities } from './capabilities.ts';
import type { CapstanApi } from './capstan-api.ts';
import { checkResult } from './check-result.ts';
import { followRun } from './event-delays.ts';
import { createKept, keptChain } from './kept-results.ts';
import { awaitKnown, tellDispatch } from './planned-dispatch.ts';
import type { RunEnds } from './run-ends.ts';
import { dispatchShape, latencyShapes, makeText, type Shape, slowShape } from './shapes.ts';
import type { CapstanWork, Side, SideName } from './side.ts';

export type Variant = 'unset' | 'queued';

export function pipelineName(variant: Variant, { kind, steps, capability }: Shape): string {
  return `bench-${variant}-${capability}-${kind}-${steps}`;
}

export function describePipeline(variant: Variant, shape: Shape) {
  return {
    pipeline: pipelineName(variant, shape),
    version: '1.0.0',
    steps: Array.from({ length: shape.steps }, (_, index) => ({
      id: `s${index}`,
      capability: capabilities[shape.capability].name,
      ...(variant === 'queued' ? { dispatch: 'queued' } : {}),
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

interface CapstanContext {
  readonly name: SideName;
  readonly variant: Variant;
  /** Names of its processes. */
  readonly processes: readonly string[];
  readonly api: CapstanApi;
  readonly client: Client;
  readonly ends: RunEnds;
  /** Where the tally is. */
  readonly endpoint: string;
}

/** @returns the run's id */
async function startRun({ api, variant }: CapstanContext, shape: Shape, text: string): Promise<string> {
  const body = { pipeline: pipelineName(variant, shape), job: { text } };
  const { run_id } = await api.post<{ run_id: string }>('/v1/runs', body);
  return run_id;
}

/** Nine calls show enough of a capability. */
const firstRuns = 3;

async function createWork(context: CapstanContext, run: Side['run']): Promise<CapstanWork> {
  const { api, variant } = context;
  const measureKept = variant === 'unset' ? await createKept(context) : null;
  return {
    learn: async () => {
      for (const shape of [dispatchShape, slowShape]) {
        for (let count = 0; count < firstRuns; count++) await run(shape, makeText());
        await awaitKnown(api, pipelineName(variant, shape));
      }
      if (measureKept === null) return;
      await measureKept();
      await awaitKnown(api, keptChain);
    },
    follow: async () => followRun(api, await startRun(context, dispatchShape, makeText())),
    tellDispatch: () => tellDispatch(api, pipelineName(variant, dispatchShape)),
    measureKept,
  };
}

/** Stores the pipelines. */
export async function createCapstanSide(context: CapstanContext): Promise<Side> {
  const { name, variant, processes, api, client, ends } = context;
  for (const shape of latencyShapes) await api.post('/v1/pipelines', describePipeline(variant, shape));
  let last = { runId: '', projectId: '', pipeline: '' };

  const finish = async (shape: Shape, text: string): Promise<number> => {
    const runId = await startRun(context, shape, text);
    const { projectId, pipeline, state, finishedAtMs, output } = await ends.wait(runId);
    if (state !== 'succeeded') throw new Error(`run ${runId} has ${state}`);
    checkResult(shape, text, toResult(shape, output));
    last = { runId, projectId, pipeline };
    return finishedAtMs;
  };
  const run: Side['run'] = async (shape, text) => void (await finish(shape, text));

  return {
    name,
    parts: ['Temporal', 'Postgres', 'capability', ...processes],
    run,
    time: async (shape, text) => {
      const startedAt = Date.now();
      return (await finish(shape, text)) - startedAt;
    },
    countHistory: async () => {
      const workflow = client.workflow.getHandle(await findRunWorkflow(client, last));
      return (await workflow.describe()).historyLength;
    },
    capstan: await createWork(context, run),
  };
}
