/**
 * What reaches a workflow from outside: its input, and commands of users: pause, resume, another ceiling. Also the mutex
 * of its local activities.
 *
 * A workflow with a newer engine version than this worker waits for a worker that knows it. An error that is not a
 * Temporal failure fails the workflow task, never the workflow, and Temporal retries the task, eventually on a newer
 * worker. Nothing has happened before, because this check comes first. An input that no version knows ends the workflow.
 */

import { type FindFault, newerEngineOf, readControl } from '@capstan/core/received/workflow-messages';
import { type ControlSignal, engineVersion, type RunPipelineInput } from '@capstan/core/workflow-payloads';
import { ApplicationFailure, defineSignal, setHandler } from '@temporalio/workflow';
import { announcePhase } from './web-ui.ts';

/**
 * @throws ApplicationFailure that ends a workflow with an input that is none of Capstan's
 * @throws Error that fails only the workflow task
 */
export function requireInput(input: unknown, findFault: FindFault): void {
  const newer = newerEngineOf(input);
  if (newer !== null) {
    throw new Error(`engine version ${newer} waits for a newer worker: this one knows ${engineVersion}`);
  }
  const fault = findFault(input);
  if (fault === null) return;
  const message = `Capstan has not started this workflow, and cannot: ${fault}`;
  throw ApplicationFailure.nonRetryable(message, 'request_invalid');
}

/** Calls `take` with each signal of that name that is one of Capstan's. Call once per workflow. */
export function handleSignal<Message>(
  name: string,
  read: (value: unknown) => Message | null,
  take: (message: Message) => void,
): void {
  setHandler(defineSignal<[unknown]>(name), (value) => {
    const message = read(value);
    if (message !== null) take(message);
  });
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

export interface RunControl {
  /** The state of the run's row, as last notified. */
  current(): ControlSignal;
  /** Calls `pause` on every later pause and resumption, in the order of the followers. */
  follow(pause: (isPaused: boolean) => void): void;
}

/**
 * Call once per workflow: it registers the signal handler. A signal from between two histories is applied on return.
 */
export function createRunControl(input: RunPipelineInput): RunControl {
  let known: ControlSignal = input.snapshot?.control ??
    input.control ?? { version: 0, paused: false, budget_version: 0 };
  const followers: ((isPaused: boolean) => void)[] = [];
  const read = (value: unknown): ControlSignal | null => readControl(value, known.version);
  handleSignal('control', read, (signal) => {
    const isChanged = signal.paused !== known.paused;
    known = signal;
    if (!isChanged) return;
    announcePhase(input, signal.paused ? 'paused' : 'running');
    for (const follow of followers) follow(signal.paused);
  });
  return {
    current: () => known,
    follow: (pause) => void followers.push(pause),
  };
}
