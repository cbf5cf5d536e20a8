/**
 * Cancels work, once and with a reason. A call makes several of these, and a `CancelSource` costs a tenth of an
 * AbortSignal. An AbortSignal fits wherever a `CancelSignal` is expected.
 */
export interface CancelSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export class CancelSource<Reason = unknown> implements CancelSignal {
  aborted = false;
  reason: Reason | undefined;
  #listeners: (() => void)[] = [];

  /** Only the first call has an effect. */
  abort(reason: Reason): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }

  addEventListener(_: 'abort', listener: () => void): void {
    if (!this.aborted) this.#listeners.push(listener);
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }
}

/** Calls `listener` when the signal is cancelled, or at once if it already is. @returns a function that unsubscribes */
export function onCancel(signal: CancelSignal, listener: () => void): () => void {
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener);
  return () => signal.removeEventListener('abort', listener);
}

/** For APIs that accept only an AbortSignal. */
export function toAbortSignal(signal: CancelSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  const controller = new AbortController();
  onCancel(signal, () => controller.abort(signal.reason));
  return controller.signal;
}
