/**
 * Submits runs over HTTP and waits for their end in the database. The end is the run's own `finished_at`: what a
 * user is told, written before the workflow closes.
 */
import type { Client } from '@temporalio/client';
import { Agent } from 'undici';
import { workflowIdOf } from '../../src/clients/temporal/run-workflows.ts';
import { capabilityName } from './capability-process.ts';
import type { RunEnds } from './run-ends.ts';
import { latencyShapes, loadShape, payloadText, pipelineName, type Shape } from './shapes.ts';
import type { Side } from './side.ts';
import type { Stack } from './stack.ts';

const describePipeline = (shape: Shape) => ({
  pipeline: pipelineName(shape),
  version: '1.0.0',
  steps: Array.from({ length: shape.steps }, (_, index) => ({
    id: `s${index}`,
    capability: capabilityName,
    input: {
      n: shape.kind === 'parallel' || index === 0 ? index : `{{ steps.s${index - 1}.output.n }}`,
      text: '{{ job.text }}',
    },
  })),
});

type Post = (path: string, body: unknown) => Promise<{ readonly run_id?: string }>;

const createPost = (agent: Agent, { apiUrl, apiKey }: Stack): Post => {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` };
  return async (path, body) => {
    const text = JSON.stringify(body);
    const answer = await agent.request({ origin: apiUrl, path, method: 'POST', headers, body: text });
    if (answer.statusCode < 300) return (await answer.body.json()) as { run_id?: string };
    throw new Error(`POST ${path}: ${answer.statusCode} ${await answer.body.text()}`);
  };
};

const registerCapability = (post: Post, { endpoint }: Stack) =>
  post('/v1/capabilities', {
    ...{ name: capabilityName, version: '1.0.0', endpoint, max_concurrency: 512, tags: [] },
    ...{ spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` },
    cost_model: { type: 'free', rate_usd: 0 },
  });

/** Registers the capability and stores the pipelines. */
export const createCapstanSide = async (stack: Stack, client: Client, ends: RunEnds): Promise<Side> => {
  const post = createPost(new Agent({ connections: 64, pipelining: 1 }), stack);
  await registerCapability(post, stack);
  for (const shape of [...latencyShapes, loadShape]) await post('/v1/pipelines', describePipeline(shape));
  let lastId = '';

  const finish = async (shape: Shape): Promise<number> => {
    const pipeline = pipelineName(shape);
    const { run_id = '' } = await post('/v1/runs', { pipeline, job: { text: payloadText } });
    const { state, finishedAtMs } = await ends.wait(run_id);
    if (state !== 'succeeded') throw new Error(`run ${run_id} has ${state}`);
    lastId = run_id;
    return finishedAtMs;
  };

  return {
    name: 'capstan',
    run: async (shape) => void (await finish(shape)),
    time: async (shape) => {
      const startedAt = Date.now();
      return (await finish(shape)) - startedAt;
    },
    countHistory: async () =>
      (await client.workflow.getHandle(workflowIdOf(stack.projectId, lastId)).describe()).historyLength,
  };
};
