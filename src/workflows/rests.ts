/**
 * A run below a `for_each` signals its parent when it begins to rest, and when its rest ends (M13): the item that it is
 * leaves its place among `max_parallel` meanwhile. One signal is sent at a time, so that they arrive in order, and only
 * what differs from the last one is sent: at most two for each review. A parent that has ended needs none.
 */

import type { DrivenRun } from '@capstan/core/run/drive';
import type { ParentUnit, RestedSignal, RunPipelineInput } from '@capstan/core/workflow-payloads';
import { CancellationScope, getExternalWorkflowHandle, TemporalFailure } from '@temporalio/workflow';

export interface Rests {
  /** The run has begun to rest, or no longer rests. */
  changed(): void;
  /** Resolves when the parent has been told, so that a signal is not lost between two histories. */
  told(): Promise<void>;
}

export function createRests({ parent, run_id, snapshot }: RunPipelineInput, { state }: DrivenRun): Rests {
  let known = snapshot?.machine.isAtRest === true;
  let telling: Promise<void> | null = null;
  const tellParent = async (unit: ParentUnit): Promise<void> => {
    while (known !== state.isAtRest) {
      known = state.isAtRest;
      await tell(unit, { run_id, rests: known });
    }
    telling = null;
  };
  return {
    changed: () => {
      if (parent === undefined) return;
      telling ??= Promise.resolve().then(() => tellParent(parent)); // at the end of the turn
    },
    told: () => telling ?? Promise.resolve(),
  };
}

async function tell(
  { workflow_id, ...unit }: ParentUnit,
  news: Pick<RestedSignal, 'run_id' | 'rests'>,
): Promise<void> {
  const message: RestedSignal = { ...unit, ...news };
  const parent = getExternalWorkflowHandle(workflow_id);
  await CancellationScope.nonCancellable(() => parent.signal('rested', message)).catch((error: unknown) => {
    if (!(error instanceof TemporalFailure)) throw error; // else it has ended
  });
}
