/**
 * The open calls of a process that have a waiting caller, which it settles before it stops, and their Idempotency-Keys.
 */

import { type CancelSignal, CancelSource, onCancel } from '@capstan/core/cancellation';
import { LiveList } from '@capstan/core/live-list';
import { type KeyHold, renewKeys } from '../../db/idempotency.ts';
import { createLeaseRenewer, type LeaseRenewer } from '../delivery/lease-renewer.ts';
import type { PartBase } from '../part.ts';

export type OpenCalls = ReturnType<typeof createOpenCalls>;

/** Calls in flight in this process, so that it can stop without leaving one unsettled. */
export function createOpenCalls() {
  const open = new LiveList<{ readonly own: CancelSource; readonly task: Promise<unknown> }>();
  let isClosed = false;
  return {
    /**
     * @param leaving aborts when the caller disconnects, which cancels the call. Null: the call continues without a
     * caller
     */
    run: async <Result>(
      leaving: CancelSignal | null,
      work: (signal: CancelSignal) => Promise<Result>,
    ): Promise<Result> => {
      const own = new CancelSource();
      const stopListening = leaving === null ? null : onCancel(leaving, () => own.abort('cancelled'));
      if (isClosed) own.abort('abandoned');
      const task = work(own);
      const entry = open.add({ own, task });
      try {
        return await task;
      } finally {
        open.remove(entry);
        stopListening?.();
      }
    },
    /** Abandons the open calls; resolves when all of them have ended. */
    close: async (): Promise<void> => {
      isClosed = true;
      const calls = open.members();
      for (const { own } of calls) own.abort('abandoned');
      await Promise.allSettled(calls.map(({ task }) => task));
    },
  };
}

/** Renews a key while the process does not turn. @returns ends that */
export type KeepInFreeze = (hold: KeyHold) => () => void;

export interface KeyRenewer extends LeaseRenewer<KeyHold> {
  /** From before the key is reserved. */
  readonly keepInFreeze: KeepInFreeze;
}

/** A key that is not renewed for 10 s may be taken over. */
const keyRenewalMs = 2_500;

export function createKeyRenewer(
  { db, logger }: PartBase,
  keepInFreeze: KeepInFreeze = () => () => undefined,
): KeyRenewer {
  const renewer = createLeaseRenewer<KeyHold>({
    renew: (held) => renewKeys(db, held),
    idOf: ({ holder }) => holder,
    intervalMs: keyRenewalMs,
    retryMs: keyRenewalMs,
    logger,
  });
  return { ...renewer, keepInFreeze };
}
