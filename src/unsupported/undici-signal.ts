/**
 * Undici declares that a request is aborted by an AbortSignal or an EventEmitter. It takes whatever has
 * `addEventListener` for the former and asks it for `aborted` and `reason` alone.
 */
import type { Dispatcher } from 'undici';
import type { CancelSignal } from '../core/cancellation.ts';

/** The signal, as a request of undici takes it. */
export function toUndiciSignal(signal: CancelSignal): NonNullable<Dispatcher.RequestOptions['signal']> {
  return signal as AbortSignal;
}
