/** Definitions of thousands of steps, and outputs of megabytes. */

import type { JsonObject } from '@capstan/core/contracts/primitives';
import type { Run } from '@capstan/core/contracts/run';
import { Client, Connection } from '@temporalio/client';
import { findRunWorkflow } from '../../../bench/shared/run-workflow-id.ts';
import { hashOf } from '../../../test/support/hash-chain.ts';
import { waitFor } from '../../../test/support/wait.ts';
import { chainOf, type Dag, type DagStep, definitionOf, fanOutOf, randomOf } from '../dag.ts';
import { playUnderLoad, type Round, type Stage } from '../play.ts';
import { atMost, joinVerdicts, type Verdict } from '../verdict.ts';

/** Temporal warns from here on. */
const longestHistory = 10_240;

/** @returns events in the longest history of the run */
async function measureHistories({ stage, client, pipeline }: Round): Promise<number> {
  const { temporalAddress: address, namespace } = stage.cluster;
  const connection = await Connection.connect({ address });
  try {
    const temporal = new Client({ connection, namespace });
    const [runId = ''] = client.submissions.runs.keys();
    const workflowId = await findRunWorkflow(temporal, { runId, projectId: '', pipeline });
    const lengths: number[] = [];
    for await (const { runId: one } of temporal.workflow.list({ query: `WorkflowId = "${workflowId}"` })) {
      lengths.push((await temporal.workflow.getHandle(workflowId, one).describe()).historyLength);
    }
    return Math.max(...lengths);
  } finally {
    await connection.close();
  }
}

async function runLarge(stage: Stage, kind: string, dag: Dag): Promise<Verdict> {
  const load = { name: `large-${kind}`, count: 1, pace: 1, dag, last: 0, fleet: { minMs: 2, maxMs: 10 } };
  const began = performance.now();
  const { figures, breaches } = await playUnderLoad(stage, load, {
    disturb: async () => ({ figures: {}, breaches: [] }),
    audit: async (round) => atMost('events', await measureHistories(round), longestHistory),
  });
  const seconds = Math.round((performance.now() - began) / 1_000);
  const { events = '' } = figures;
  return { figures: { [kind]: `${dag.length} steps in ${seconds} s, ${events} events` }, breaches };
}

export async function runLargeDags(stage: Stage): Promise<Verdict> {
  const steps = stage.isLong ? 10_000 : 300;
  return joinVerdicts([
    await runLarge(stage, 'chain', chainOf(steps)),
    await runLarge(stage, 'fan-out', fanOutOf(steps)),
    await runLarge(stage, 'random', randomOf(steps)),
  ]);
}

const bytesOfMiB = 1_048_576;
/** By the number of the run. */
const taken = [1.9, 2.1, 16];
const refused = { n: 1_000, mebibytes: 65 };

/** An answer of exactly so many bytes, as it is sent. */
function blobOf(h: string, mebibytes: number): string {
  const around = JSON.stringify({ ok: true, output: { h, blob: '' } }).length;
  return 'x'.repeat(Math.floor(mebibytes * bytesOfMiB) - around);
}

const dag: readonly DagStep[] = [
  { id: 'large', after: [] },
  { id: 'after', after: ['large'] },
];

async function submitRefused({ stage, fleet, pipeline }: Round): Promise<Verdict> {
  const definition = definitionOf(`${pipeline}-refused`, dag, pipeline);
  const job = { n: refused.n };
  const { body } = await stage.api.request<Run>('POST', '/v1/runs', { definition, job });
  const ended = await waitFor(
    'the run to fail',
    async () => {
      const run = (await stage.api.request<Run>('GET', `/v1/runs/${body.run_id}`)).body;
      return run.finished_at === null ? undefined : run;
    },
    60_000,
  );
  const code = ended.steps.find(({ id }) => id === 'large')?.error?.code;
  const calls = fleet.lines.filter(({ kind, n }) => kind === 'begin' && n === refused.n).length;
  return {
    figures: { [`${refused.mebibytes} MiB`]: `${code}, calls: ${calls}` },
    breaches: code === 'output_too_large' && calls === 1 ? [] : [`${code} after ${calls} calls`],
  };
}

export function answerMegabytes(stage: Stage): Promise<Verdict> {
  const sizes = new Map([...taken.entries(), [refused.n, refused.mebibytes] as const]);
  const work = (input: JsonObject): JsonObject => {
    const h = hashOf(input);
    const size = input.id === 'large' ? sizes.get(Number(input.n)) : undefined;
    return size === undefined ? { h } : { h, blob: blobOf(h, size) };
  };
  return playUnderLoad(
    stage,
    { name: 'large-outputs', count: taken.length, pace: 2, dag, fleet: { work } },
    {
      disturb: async (round) => {
        const passed = { figures: { 'MiB that pass': taken.join(', ') }, breaches: [] };
        return joinVerdicts([passed, await submitRefused(round)]);
      },
    },
  );
}
