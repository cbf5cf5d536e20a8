/**
 * What a workflow goes by besides its plan: the engine version, the length of its history, turns of local
 * activities, and the words of its users.
 *
 * A workflow whose engine version is newer than this worker waits for one that knows it. An error that is no
 * failure of Temporal's fails the workflow task, never the workflow, and Temporal gives the task out again, in the
 * end to a newer worker. Nothing has happened before: this is the first thing that a workflow does.
 */

import { defineSignal, setHandler, workflowInfo } from '@temporalio/workflow';
import type { HistoryPressure } from '../core/run/machine-state.ts';
import { type ControlSignal, engineVersion, type RunPipelineInput } from '../core/workflow-payloads.ts';
import { announcePhase } from './web-ui.ts';

/** @throws Error that only fails the task */
export function requireKnownEngine({ engine_version }: { readonly engine_version: number }): void {
  if (engine_version <= engineVersion) return;
  throw new Error(
    `engine version ${engine_version} waits for a newer worker: this one knows ${engineVersion}`,
  );
}

const softEvents = 4_096;
const softBytes = 4 * 1_048_576;

/** How long the history of this workflow has become: past the first limit it continues as new as soon as it can, past the second it must. */
export function createHistoryPressure({ history_events = softEvents }: RunPipelineInput) {
  return (): HistoryPressure => {
    const { historyLength, historySize } = workflowInfo();
    const times = Math.max(historyLength / history_events, historySize / softBytes);
    return times < 1 ? 'none' : times < 2 ? 'soft' : 'hard';
  };
}

/**
 * Local activities of a run, one at a time. Those that are under way together may be answered one by one at first and
 * together in a replay, where what the run asks for between two answers is asked for once; in turns, every answer comes
 * by itself, in the order of the questions, then and now.
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

// What users say to a run that is under way: pause, resume, another ceiling. The highest version counts.

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
