/**
 * A breaker per instance. Each process counts what it sees and opens the breaker for all; the database lets one
 * trial through per window, and who made the trial closes or reopens it.
 */
import type { Logger } from 'pino';
import { type FaultWindow, noFaults, openMs, recordOutcome } from '../../core/routing/breaker.ts';
import type { Db } from '../../db/connect.ts';
import { closeBreaker, type OpeningReason, openBreaker } from '../../db/instance/instance-breaker.ts';

export interface CallReport {
  readonly ok: boolean;
  /** No connection was made. */
  readonly isRefused: boolean;
  /** How much it says, at most 1. */
  readonly weight: number;
  readonly isTrial: boolean;
}

export interface Breakers {
  /** How a call ended, as far as the instance is to blame for it. */
  record(instanceId: string, report: CallReport): void;
  /** A half-open instance does not even answer `/health`. */
  reopen(instanceId: string): Promise<void>;
  /** Resolves when what was recorded is written. */
  settled(): Promise<void>;
}

export function createBreakers({ db, logger }: { readonly db: Db; readonly logger: Logger }): Breakers {
  const windows = new Map<string, FaultWindow>();
  const writing = new Set<Promise<void>>();

  const write = (instanceId: string, work: Promise<void>): void => {
    const task = work
      .catch((error: unknown) =>
        logger.warn({ err: error, instance_id: instanceId }, 'a breaker was not written'),
      )
      .finally(() => writing.delete(task));
    writing.add(task);
  };

  const open = async (instanceId: string, because: OpeningReason): Promise<void> => {
    const opened = await openBreaker(db, instanceId, { because, openMs: (n) => openMs(n, Math.random()) });
    if (opened) logger.warn({ instance_id: instanceId, open_ms: opened }, 'breaker opened');
  };

  return {
    record: (instanceId, { ok, isRefused, isTrial, weight }) => {
      const { window, trips } = recordOutcome(windows.get(instanceId) ?? noFaults, {
        ok,
        isRefused,
        weight,
        atMs: performance.now(),
      });
      windows.set(instanceId, window);
      if (isTrial && ok) write(instanceId, closeBreaker(db, instanceId));
      else if (trips || isTrial) write(instanceId, open(instanceId, isTrial ? 'trial' : 'faults'));
      if (trips || isTrial) windows.delete(instanceId);
    },
    reopen: (instanceId) => open(instanceId, 'health'),
    settled: async () => {
      await Promise.all(writing);
    },
  };
}
