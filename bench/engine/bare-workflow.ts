/** What one would write with the SDK alone: an activity per step, results passed on through the history. */
import { proxyActivities } from '@temporalio/workflow';
import type { BareActivities, StepInput } from './bare-activities.ts';
import type { Shape } from './shapes.ts';

const { callCapability } = proxyActivities<BareActivities>({ startToCloseTimeout: '5 minutes' });

export async function bareRun({ kind, steps }: Shape, text: string): Promise<StepInput | StepInput[]> {
  if (kind === 'parallel') {
    return Promise.all(Array.from({ length: steps }, (_, n) => callCapability({ n, text })));
  }
  let last = await callCapability({ n: 0, text });
  for (let step = 1; step < steps; step++) last = await callCapability({ n: last.n, text });
  return last;
}
