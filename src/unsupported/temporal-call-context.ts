/**
 * A connection carries the deadline of a call in an AsyncLocalStorage that its declarations show and its documents do
 * not. Once in use, such a storage makes Node follow every promise of the process, until it is disabled.
 */
import type { Connection } from '@temporalio/client';

/** To be called while no call with a deadline is under way; the next one takes the storage into use again. */
export function disableCallContext(connection: Connection): void {
  connection.callContextStorage.disable();
}
