/** Runs of three paid steps, one after the other, sixteen at once. */

import type { Api } from '../../scripts/package/api.ts';
import type { Run } from '../../src/contracts/run.ts';

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

/** @throws Error when it does not succeed */
export async function runOne(
  { request }: Api,
  { n, dispatch }: { readonly n: number; readonly dispatch: Dispatch },
): Promise<void> {
  const body = { definition: { ...definition, defaults: { dispatch } }, job: { n } };
  const answer = await request<Run>('POST', '/v1/runs', body, { prefer: 'wait=60' });
  if (answer.body.state !== 'succeeded') {
    throw new Error(`a run is ${answer.body.state}: ${JSON.stringify(answer.body)}`);
  }
}

/** @throws Error when one does not succeed */
export async function runMany(api: Api, { count, dispatch }: Load): Promise<void> {
  let next = 0;
  const follow = async (): Promise<void> => {
    while (next < count) await runOne(api, { n: next++, dispatch });
  };
  await Promise.all(Array.from({ length: atOnce }, follow));
}
