/**
 * Runs definitions of thousands of steps to their end: `npm run bench -- scale [--quick] [--json]
 * [--only items,random]`. Prints the time and how long the histories became. Exit code 1 when one does not succeed or a history is longer than Temporal warns of.
 */
import { parseArgs } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { connectCapstan } from '../engine/capstan-api.ts';
import { type RunEnds, watchRunEnds } from '../engine/run-ends.ts';
import { startStack } from '../engine/stack.ts';
import { type Place, runBench, say } from '../shared/run-bench.ts';
import { findRunWorkflow } from '../shared/run-workflow-id.ts';
import { chain, items, mosaic, random, type Shape } from './shapes.ts';
import { type Row, toTable } from './table.ts';

/** Temporal warns from here on. */
const longestHistory = 10_240;

function shapes(isQuick: boolean): readonly Shape[] {
  const large = isQuick ? 1_000 : 10_000;
  return [mosaic(2_000, 6_000, 600), chain(large), items(large), random(large)];
}

async function measureHistories(client: Client, workflowId: string) {
  const lengths: number[] = [];
  const sizes: number[] = [];
  for await (const { runId } of client.workflow.list({ query: `WorkflowId = "${workflowId}"` })) {
    const { historyLength, historySize } = await client.workflow.getHandle(workflowId, runId).describe();
    lengths.push(historyLength);
    sizes.push(historySize ?? 0);
  }
  return { histories: lengths.length, events: Math.max(...lengths), bytes: Math.max(...sizes) };
}

interface Measuring {
  readonly post: (path: string, body: object) => Promise<{ readonly run_id?: string }>;
  readonly client: Client;
  readonly ends: RunEnds;
}

async function measure({ post, client, ends }: Measuring, shape: Shape): Promise<Row> {
  say(`${shape.name}: ${shape.calls} calls, ${shape.edges} edges`);
  const startedAt = Date.now();
  const { run_id = '' } = await post('/v1/runs', { definition: shape.definition, job: {} });
  const acceptedAt = Date.now();
  const { projectId, pipeline, state, finishedAtMs } = await ends.wait(run_id);
  return {
    name: shape.name,
    calls: shape.calls,
    edges: shape.edges,
    state,
    acceptedMs: acceptedAt - startedAt,
    seconds: (finishedAtMs - startedAt) / 1_000,
    ...(await measureHistories(
      client,
      await findRunWorkflow(client, { runId: run_id, projectId, pipeline }),
    )),
  };
}

async function bench(place: Place, chosen: readonly Shape[]): Promise<readonly Row[]> {
  const stack = await startStack(place, ['capstan']);
  const connection = await Connection.connect({ address: stack.temporalAddress });
  const ends = await watchRunEnds(stack.capstan.databaseUrl);
  try {
    const { post } = await connectCapstan(stack.capstan, stack.endpoints);
    const measuring = { post, client: new Client({ connection }), ends };
    const rows: Row[] = [];
    for (const shape of chosen) rows.push(await measure(measuring, shape));
    return rows;
  } finally {
    await ends.close();
    await connection.close();
  }
}

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});

await runBench(async (place) => {
  const names = options.only?.split(',');
  const isChosen = ({ name }: Shape): boolean => names?.some((part) => name.includes(part)) ?? true;
  const rows = await bench(place, shapes(options.quick).filter(isChosen));
  console.log(options.json ? JSON.stringify(rows, null, 2) : toTable(rows));
  return rows.every(({ state, events }) => state === 'succeeded' && events <= longestHistory);
});
