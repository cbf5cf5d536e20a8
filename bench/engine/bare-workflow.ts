/**
 * What one would write with the SDK alone: an activity per step, results passed on through the history; and the least
 * that a run can be on Temporal: one local activity that makes all calls.
 */
import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { BareActivities, StepInput } from './bare-activities.ts';
import type { Shape } from './shapes.ts';

const local = proxyLocalActivities<BareActivities>({ startToCloseTimeout: '5 minutes' });
const activities = proxyActivities<BareActivities>({ startToCloseTimeout: '5 minutes' });

export async function bareRun(shape: Shape, text: string): Promise<StepInput | StepInput[]> {
  const { kind, steps } = shape;
  const call = shape.capability === 'slow' ? activities.callSlowCapability : activities.callCapability;
  if (kind === 'parallel') {
    return Promise.all(Array.from({ length: steps }, (_, n) => call({ n, text })));
  }
  let last = await call({ n: 0, text });
  for (let step = 1; step < steps; step++) last = await call({ n: last.n, text });
  return last;
}

export function floorRun(shape: Shape, text: string): Promise<StepInput | StepInput[]> {
  return local.callAll(shape, text);
}
