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

export interface Load {
  readonly count: number;
  readonly dispatch: 'queued' | 'auto';
}

/** @throws Error when one does not succeed */
export async function runMany({ request }: Api, { count, dispatch }: Load): Promise<void> {
  const body = { definition: { ...definition, defaults: { dispatch } } };
  let next = 0;
  const follow = async (): Promise<void> => {
    while (next < count) {
      const n = next++;
      const { body: run } = await request<Run>(
        'POST',
        '/v1/runs',
        { ...body, job: { n } },
        { prefer: 'wait=60' },
      );
      if (run.state !== 'succeeded') throw new Error(`a run is ${run.state}: ${JSON.stringify(run)}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, follow));
}
