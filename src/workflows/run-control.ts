/** What users say to a run that is under way: pause, resume, another ceiling. The highest version counts. */
import { defineSignal, setHandler } from '@temporalio/workflow';
import type { ControlSignal } from '../core/workflow-payloads/run-input.ts';

const controlSignal = defineSignal<[ControlSignal]>('control');

/** Once in a workflow: it takes the signal. @returns how the run's row stands, as far as it was told */
export function createRunControl(
  carried: ControlSignal | undefined,
  onPause: (isPaused: boolean) => void,
): () => ControlSignal {
  let known: ControlSignal = carried ?? { version: 0, paused: false, budget_version: 0 };
  setHandler(controlSignal, (told) => {
    if (told.version <= known.version) return;
    const isChanged = told.paused !== known.paused;
    known = told;
    if (isChanged) onPause(told.paused);
  });
  return () => known;
}
