/**
 * Steps that a batch of inline steps has begun and does not wait for: they go on in this process, and whoever executes
 * one of them from the queue takes part in it, instead of sending its call once more.
 */
import type { CallProgress } from '../../core/call/progress.ts';
import { CancelSource, onCancel } from '../../core/cancellation.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import { callKeyOf, type StepControl } from './call-for-step.ts';

export interface GoingCalls<End> {
  /** Begins one, unless it goes on already; resolves to its end. It goes on until it ends, or is asked to stop. */
  begin(
    key: StepKey,
    work: (control: Pick<StepControl, 'signal' | 'onProgress'>) => Promise<End>,
  ): Promise<End>;
  /** The end of one that goes on here; null when it does not. */
  join(key: StepKey, control: Pick<StepControl, 'signal' | 'onProgress'>): Promise<End> | null;
  /** The process is about to end: no batch begins anything any more, so that other workers go on with the runs. */
  retire(): void;
  isRetiring(): boolean;
  /** Asks all to stop: the process ends. */
  abandon(): void;
  /** Resolves when none goes on. */
  settled(): Promise<void>;
}

interface GoingCall<End> {
  readonly source: CancelSource;
  readonly end: Promise<End>;
  /** Who hears how far it has come. */
  readonly listener: { tell: (progress: CallProgress) => void };
}

export function createGoingCalls<End>(): GoingCalls<End> {
  const going = new Map<string, GoingCall<End>>();
  let isRetiring = false;
  return {
    begin: (key, work) => {
      const name = callKeyOf(key);
      const known = going.get(name);
      if (known !== undefined) return known.end;
      const source = new CancelSource();
      const listener: GoingCall<End>['listener'] = { tell: () => undefined };
      const end = work({ signal: source, onProgress: (progress) => listener.tell(progress) });
      const forget = (): void => void going.delete(name);
      end.then(forget, forget);
      going.set(name, { source, listener, end });
      return end;
    },
    join: (key, { signal, onProgress }) => {
      const call = going.get(callKeyOf(key));
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
      for (const { source } of going.values()) source.abort('abandoned');
    },
    settled: async () => {
      await Promise.allSettled([...going.values()].map(({ end }) => end));
    },
  };
}
