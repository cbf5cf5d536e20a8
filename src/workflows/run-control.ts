/**
 * Commands of users to a workflow: pause, resume, another ceiling. Also its engine version, and the mutex of its local
 * activities.
 *
 * A workflow with a newer engine version than this worker waits for a worker that knows it. An error that is not a
 * Temporal failure fails the workflow task, never the workflow, and Temporal retries the task, eventually on a newer
 * worker. Nothing has happened before, because this check comes first.
 */

import { defineSignal, setHandler } from '@temporalio/workflow';
import { type ControlSignal, engineVersion, type RunPipelineInput } from '../core/workflow-payloads.ts';
import { announcePhase } from './web-ui.ts';

/** @throws Error that fails only the workflow task */
export function requireKnownEngine({ engine_version }: { readonly engine_version: number }): void {
  if (engine_version <= engineVersion) return;
  throw new Error(
    `engine version ${engine_version} waits for a newer worker: this one knows ${engineVersion}`,
  );
}

/**
 * A mutex for the local activities of a run. Concurrent ones may complete one by one at first but together in a replay,
 * where the run's requests between two results are merged into one. Under the mutex, each result arrives alone, in the
 * order of the requests, in both cases.
 */
export type LocalTurns = <Result>(work: () => Promise<Result>) => Promise<Result>;

export function createLocalTurns(): LocalTurns {
  let last: Promise<unknown> | null = null;
  return (work) => {
    const mine = last === null ? work() : last.then(work, work);
    const over = (): void => {
      if (last === mine) last = null;
    };
    last = mine;
    mine.then(over, over);
    return mine;
  };
}

// User commands to a running run: pause, resume, raise of the ceiling. The highest version counts.

const controlSignal = defineSignal<[ControlSignal]>('control');

export interface RunControl {
  /** The state of the run's row, as last notified. */
  current(): ControlSignal;
  /** Calls `pause` on every later pause and resumption. */
  follow(pause: (isPaused: boolean) => void): void;
}

/**
 * Call once per workflow: it registers the signal handler. A signal from between two histories is applied on return.
 */
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
