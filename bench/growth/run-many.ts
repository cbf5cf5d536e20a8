/** Runs of three paid steps, one after the other, sixteen at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Run, terminalRunStates } from '@capstan/core/contracts/run';
import type { Api } from '../../scripts/package/api.ts';

const atOnce = 16;
const definition = {
  pipeline: 'growth',
  version: '1',
  steps: ['first', 'second', 'third'].map((id, at, ids) => ({
    id,
    capability: 'growth',
    input: {
      n: '{{ job.n }}',
      text: 'a text of some length, as an input has one',
      after: at === 0 ? null : `{{ steps.${ids[at - 1]}.output.n }}`,
    },
  })),
};

type Dispatch = 'queued' | 'auto';

export interface Load {
  readonly count: number;
  readonly dispatch: Dispatch;
}

const patienceMs = 600_000;

/** @throws Error when it does not succeed within ten minutes */
export async function runOne(
  { request }: Api,
  { n, dispatch }: { readonly n: number; readonly dispatch: Dispatch },
): Promise<void> {
  const until = performance.now() + patienceMs;
  const body = { definition: { ...definition, defaults: { dispatch } }, job: { n } };
  let run = (await request<Run>('POST', '/v1/runs', body, { prefer: 'wait=60' })).body;
  while (!terminalRunStates.has(run.state) && performance.now() < until) {
    await sleep(1_000);
    run = (await request<Run>('GET', `/v1/runs/${run.run_id}`)).body;
  }
  if (run.state !== 'succeeded') throw new Error(`a run is ${run.state}: ${JSON.stringify(run)}`);
}

/** @throws Error when one does not succeed */
export async function runMany(api: Api, { count, dispatch }: Load): Promise<void> {
  let next = 0;
  const follow = async (): Promise<void> => {
    while (next < count) await runOne(api, { n: next++, dispatch });
  };
  await Promise.all(Array.from({ length: atOnce }, follow));
}
