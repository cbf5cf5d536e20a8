/**
 * Steps of batches whose call is in flight, so that no other execution of them sends it once more (B9). A batch does
 * not wait for every step that it has begun: those steps continue in this process, and an execution of one of them from
 * the queue joins it. If another process makes the call, the execution waits for that process.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { CallProgress } from '../../core/call/outcome.ts';
import { CancelSource, onCancel, toAbortSignal } from '../../core/cancellation.ts';
import { isHeld, loseOpenAttempt, type StepKey } from '../../db/attempt/attempt.ts';
import type { Db } from '../../db/connect.ts';
import { callKeyOf, type StepControl } from '../../use-cases/steps/call.ts';

export interface InFlightSteps<End> {
  /**
   * Begins a step, unless it is in flight; resolves to its end. The step is in flight until it ends or is asked to
   * stop.
   */
  begin(
    key: StepKey,
    work: (control: Pick<StepControl, 'signal' | 'onProgress'>) => Promise<End>,
  ): Promise<End>;
  /** @returns the end of a step that is in flight here; null when it is not */
  join(key: StepKey, control: Pick<StepControl, 'signal' | 'onProgress'>): Promise<End> | null;
  /** B13: the process is about to stop: batches begin nothing more, so that other workers continue the runs. */
  retire(): void;
  isRetiring(): boolean;
  /** Asks all steps to stop, at shutdown. */
  abandon(): void;
  /** Resolves when no step is in flight. */
  settled(): Promise<void>;
}

interface InFlightStep<End> {
  readonly source: CancelSource;
  readonly end: Promise<End>;
  /** Receives the progress of the call. */
  readonly listener: { tell: (progress: CallProgress) => void };
}

export function createInFlightSteps<End>(): InFlightSteps<End> {
  const inFlight = new Map<string, InFlightStep<End>>();
  let isRetiring = false;
  return {
    begin: (key, work) => {
      const name = callKeyOf(key);
      const known = inFlight.get(name);
      if (known !== undefined) return known.end;
      const source = new CancelSource();
      const listener: InFlightStep<End>['listener'] = { tell: () => undefined };
      const end = work({ signal: source, onProgress: (progress) => listener.tell(progress) });
      const forget = (): void => void inFlight.delete(name);
      end.then(forget, forget);
      inFlight.set(name, { source, listener, end });
      return end;
    },
    join: (key, { signal, onProgress }) => {
      const call = inFlight.get(callKeyOf(key));
      if (call === undefined) return null;
      if (onProgress !== undefined) call.listener.tell = onProgress;
      const stopListening = onCancel(signal, () => call.source.abort(signal.reason));
      return call.end.finally(stopListening);
    },
    retire: () => {
      isRetiring = true;
    },
    isRetiring: () => isRetiring,
    abandon: () => {
      for (const { source } of inFlight.values()) source.abort('abandoned');
    },
    settled: async () => {
      await Promise.allSettled([...inFlight.values()].map(({ end }) => end));
    },
  };
}

const pauseMs = 250;

/**
 * Waits while another process makes the call of a step: a batch has begun it, or Temporal has dispatched the step again
 * after late heartbeats. A dead process holds the step until its lease expires; a process whose step is cancelled loses
 * it and ends the call.
 *
 * @returns the control with the remaining time of the step
 */
export async function waitForHolder(db: Db, key: StepKey, control: StepControl): Promise<StepControl> {
  const name = callKeyOf(key);
  const { signal } = control;
  const deadline = performance.now() + control.remainingMs;
  while (await isHeld(db, [name])) {
    if (signal.reason === 'cancelled') await loseOpenAttempt(db, name);
    if (signal.aborted || performance.now() > deadline) break;
    await pause(pauseMs, undefined, { signal: toAbortSignal(signal) }).catch(() => undefined);
  }
  return { ...control, remainingMs: Math.max(0, deadline - performance.now()) };
}
