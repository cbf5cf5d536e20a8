/** The call of a step that may be answered by the result of an equal one, and the time that it has. */
import type { JsonObject } from '../../contracts/primitives.ts';
import type { CallEnd } from '../../core/call/types.ts';
import { type CancelSignal, onCancel } from '../../core/cancellation.ts';
import type { CompiledStep } from '../../core/definition/compile/compile-definition.ts';
import type { StepKey } from '../../db/attempt/attempt.ts';
import type { CacheLookup } from '../../db/cache/cached-result.ts';
import type { RunContext } from '../run-data/run-context.ts';
import type { CallKeys } from './keyed-call.ts';

/** Of a step, or of one of its items. */
export interface StepCall {
  readonly context: RunContext;
  readonly step: CompiledStep;
  readonly key: StepKey;
  readonly input: JsonObject;
}

export type SucceededCall = Extract<CallEnd, { kind: 'succeeded' }>;

export interface Clock {
  readonly signal: CancelSignal;
  readonly passedMs: () => number;
  readonly leftMs: () => number;
}

/** A call on its way to a result. */
export interface Passage {
  readonly stepCall: StepCall;
  readonly keys: CallKeys;
  readonly lookup: CacheLookup;
  readonly clock: Clock;
}

export function startClock(remainingMs: number, signal: CancelSignal): Clock {
  const startedAt = performance.now();
  const passedMs = (): number => performance.now() - startedAt;
  return { signal, passedMs, leftMs: () => remainingMs - passedMs() };
}

/** A timer takes no more. */
const longestTimerMs = 2_147_483_647;

/** Null when the time is over before, or the call is cancelled. */
export function within<Result>(waited: Promise<Result>, { signal, leftMs }: Clock): Promise<Result | null> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      stopListening();
    };
    const end = (result: Result | null): void => {
      stop();
      resolve(result);
    };
    const timer = setTimeout(() => end(null), Math.min(Math.max(0, leftMs()), longestTimerMs));
    let stopListening = (): void => undefined;
    stopListening = onCancel(signal, () => end(null));
    waited.then(end, (error) => {
      stop();
      reject(error);
    });
  });
}
