/** What the last run of a pipeline was given, and what its steps yielded. */

import type { Job } from '../../../src/contracts/media.ts';
import type { Json, JsonObject } from '../../../src/contracts/primitives.ts';
import type { Run, RunSummary, StepDetail } from '../../../src/contracts/run.ts';
import { askPlainly } from './client.ts';

const mostRuns = 20;
const mostSteps = 200;

export interface RunWithOutputs {
  readonly run: Run;
  readonly job: JsonObject;
  readonly outputs: Readonly<Record<string, Json>>;
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

/** The newest run that succeeded, else the newest that ended; null when there is none. */
export async function readFormerRun(pipeline: string): Promise<RunWithOutputs | null> {
  const query = new URLSearchParams({ pipeline, limit: String(mostRuns) });
  const { items } = await askPlainly<{ readonly items: readonly RunSummary[] }>(`/v1/runs?${query}`);
  const found =
    items.find(({ state }) => state === 'succeeded') ?? items.find(({ finished_at }) => finished_at !== null);
  if (found === undefined) return null;
  const run = await askPlainly<Run>(`/v1/runs/${found.run_id}`);
  const [{ job }, outputs] = await Promise.all([askPlainly<Job>(`/v1/jobs/${run.job_id}`), readOutputs(run)]);
  return { run, job, outputs };
}
