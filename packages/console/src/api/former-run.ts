/** The input of a pipeline's last run, and the outputs of its steps and of their child runs. */

import type { Job } from '@capstan/core/contracts/media';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Run, RunSummary } from '@capstan/core/contracts/run';
import type { RunStep, StepDetail } from '@capstan/core/contracts/run-step';
import { askPlainly } from './client.ts';

const mostRuns = 20;
const mostSteps = 200;

export interface RunOutputs {
  readonly run: Run;
  readonly outputs: Readonly<Record<string, Json>>;
}

export interface RunWithOutputs extends RunOutputs {
  readonly job: JsonObject;
  /** Child runs and their descendants, in the order of steps and items. */
  readonly below: readonly RunOutputs[];
}

async function readOutputs({ run_id, steps }: Run): Promise<Record<string, Json>> {
  const asked = steps
    .filter(({ capability, review }) => capability !== undefined || review !== undefined)
    .filter(({ state }) => state === 'succeeded' || state === 'reused')
    .slice(0, mostSteps);
  const details = await Promise.all(
    asked.map(({ id }) => askPlainly<StepDetail>(`/v1/runs/${run_id}/steps/${id}`)),
  );
  return Object.fromEntries(
    details.flatMap(({ id, output }) => (output === undefined ? [] : [[id, output]])),
  );
}

/** The child runs of a step: one, or one for each of its items. */
async function listSubRuns(runId: string, { id, pipeline, items, sub_run_id }: RunStep): Promise<string[]> {
  if (pipeline === undefined) return [];
  if (items === undefined) return sub_run_id === undefined ? [] : [sub_run_id];
  const path = `/v1/runs/${runId}/steps/${id}/items?limit=200`;
  const list = await askPlainly<{ readonly items: readonly RunStep[] }>(path);
  return list.items.flatMap((item) => item.sub_run_id ?? []);
}

const mostBelow = 50;

async function readBelow({ run_id, steps }: Run, room = { left: mostBelow }): Promise<RunOutputs[]> {
  const below: RunOutputs[] = [];
  for (const step of steps) {
    for (const id of await listSubRuns(run_id, step)) {
      if (room.left-- <= 0) return below;
      const run = await askPlainly<Run>(`/v1/runs/${id}`);
      below.push({ run, outputs: await readOutputs(run) }, ...(await readBelow(run, room)));
    }
  }
  return below;
}

/** The newest run that succeeded, else the newest that ended; null when there is none. */
export async function readFormerRun(pipeline: string): Promise<RunWithOutputs | null> {
  const query = new URLSearchParams({ pipeline, limit: String(mostRuns) });
  const { items } = await askPlainly<{ readonly items: readonly RunSummary[] }>(`/v1/runs?${query}`);
  const found =
    items.find(({ state }) => state === 'succeeded') ?? items.find(({ finished_at }) => finished_at !== null);
  if (found === undefined) return null;
  const run = await askPlainly<Run>(`/v1/runs/${found.run_id}`);
  const [{ job }, outputs, below] = await Promise.all([
    askPlainly<Job>(`/v1/jobs/${run.job_id}`),
    readOutputs(run),
    readBelow(run),
  ]);
  return { run, job, outputs, below };
}
