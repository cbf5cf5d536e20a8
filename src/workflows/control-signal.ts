/** What users say to a run that is under way: pause, resume, another ceiling. The highest version counts. */
import { defineSignal, setHandler } from '@temporalio/workflow';
import type { ControlSignal, RunPipelineInput } from '../core/workflow-payloads/run-input.ts';
import { announcePhase } from './searchable-facts.ts';

const controlSignal = defineSignal<[ControlSignal]>('control');

export interface RunControl {
  /** How the run's row stands, as far as the workflow was notified. */
  current(): ControlSignal;
  /** From now on `pause` hears of every pause and every resumption. */
  follow(pause: (isPaused: boolean) => void): void;
}

/** Once in a workflow: it takes the signal. What came between two histories is known when this returns. */
export function createRunControl(input: RunPipelineInput): RunControl {
  let known: ControlSignal = input.snapshot?.control ??
    input.control ?? { version: 0, paused: false, budget_version: 0 };
  let notify: (isPaused: boolean) => void = () => undefined;
  setHandler(controlSignal, (signal) => {
    if (signal.version <= known.version) return;
    const isChanged = signal.paused !== known.paused;
    known = signal;
    if (!isChanged) return;
    announcePhase(input, signal.paused ? 'paused' : 'running');
    notify(signal.paused);
  });
  return {
    current: () => known,
    follow: (pause) => {
      notify = pause;
    },
  };
}
