/**
 * Steps of batches whose call is in flight, so that no other execution of them sends it once more (B9). A batch does
 * not wait for every step that it has begun: those steps continue in this process, and an execution of one of them from
 * the queue joins it. If another process makes the call, the execution waits for that process.
 */

import type { CallProgress } from '@capstan/core/call/outcome';
import { type CancelSignal, CancelSource, onCancel } from '@capstan/core/cancellation';
import { callKeyOf, type StepKey } from '../../db/attempt/attempt.ts';

/** Who waits for the end of a step. */
interface Listener {
  readonly signal: CancelSignal;
  readonly onProgress?: (progress: CallProgress) => void;
}

export interface InFlightSteps<End> {
  /**
   * Begins a step, unless it is in flight; resolves to its end. The step is in flight until it ends or is cancelled.
   */
  begin(key: StepKey, work: (control: Listener) => Promise<End>): Promise<End>;
  /** @returns the end of a step that is in flight here; null when it is not */
  join(key: StepKey, control: Listener): Promise<End> | null;
  /**
   * B13: the process is about to stop: batches begin nothing more, so that other workers continue the runs.
   * @param graceMs after this time, all steps are cancelled
   */
  retire(graceMs: number): void;
  isRetiring(): boolean;
  /** Resolves when no step is in flight. */
  close(): Promise<void>;
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
  const abandon = (): void => {
    for (const { source } of inFlight.values()) source.abort('abandoned');
  };
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
    retire: (graceMs) => {
      isRetiring = true;
      if (graceMs === 0) abandon();
      else setTimeout(abandon, graceMs).unref();
    },
    isRetiring: () => isRetiring,
    close: async () => {
      await Promise.allSettled([...inFlight.values()].map(({ end }) => end));
    },
  };
}
