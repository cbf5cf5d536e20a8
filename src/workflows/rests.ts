/**
 * A run below a `for_each` signals its parent when it begins to rest, and when its rest ends (M13): the item that it is
 * leaves its place among `max_parallel` meanwhile. One signal is sent at a time, so that they arrive in order, and only
 * a change from the last one is sent: at most two for each review. A parent that has ended needs none.
 */

import type { ParentUnit } from '@capstan/core/contracts/run-control';
import type { DrivenRun } from '@capstan/core/run/drive';
import type { RestedSignal, RunPipelineInput } from '@capstan/core/workflow-payloads';
import { CancellationScope, getExternalWorkflowHandle, TemporalFailure } from '@temporalio/workflow';

export interface Rests {
  /** The run has begun to rest, or no longer rests. */
  changed(): void;
  /** Resolves when the parent has the last signal, so that none is lost between two histories. */
  sent(): Promise<void>;
}

export function createRests({ parent, run_id, snapshot }: RunPipelineInput, { state }: DrivenRun): Rests {
  let known = snapshot?.machine.isAtRest === true;
  let sending: Promise<void> | null = null;
  const signalParent = async (unit: ParentUnit): Promise<void> => {
    while (known !== state.isAtRest) {
      known = state.isAtRest;
      await send(unit, { run_id, rests: known });
    }
    sending = null;
  };
  return {
    changed: () => {
      if (parent === undefined) return;
      sending ??= Promise.resolve().then(() => signalParent(parent)); // at the end of the turn
    },
    sent: () => sending ?? Promise.resolve(),
  };
}

async function send(
  { workflow_id, ...unit }: ParentUnit,
  news: Pick<RestedSignal, 'run_id' | 'rests'>,
): Promise<void> {
  const message: RestedSignal = { ...unit, ...news };
  const parent = getExternalWorkflowHandle(workflow_id);
  await CancellationScope.nonCancellable(() => parent.signal('rested', message)).catch((error: unknown) => {
    if (!(error instanceof TemporalFailure)) throw error; // else it has ended
  });
}
