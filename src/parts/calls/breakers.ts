/**
 * A breaker per instance. Each process counts its own observations and opens the breaker for all; the database lets one
 * trial through per window, and the process that made the trial closes or reopens it.
 */

import { type FaultWindow, noFaults, openMs, recordOutcome } from '@capstan/core/routing/breaker';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import { closeBreaker, type OpeningReason, openBreaker } from '../../db/instance/instance-calls.ts';
import type { VetVerdict } from '../fleet/probes-in-flight.ts';
import type { PartBase } from '../part.ts';

export interface CallReport {
  readonly ok: boolean;
  /** No connection was made. */
  readonly isRefused: boolean;
  /** Weight of the evidence, at most 1. */
  readonly weight: number;
  readonly isTrial: boolean;
  /** Of a call that the instance refused for now. */
  readonly refusal?: RefusalForNow | null;
}

export interface RefusalForNow {
  /** The run of the call; for a call without one, its project and input, so that a poll is the same caller each time. */
  readonly caller: string;
  readonly retryAfterMs: number | null;
}

export interface Breakers {
  /** The end of a call, as evidence about the instance. */
  record(instanceId: string, report: CallReport): void;
  /** A half-open instance does not answer even `/health`. */
  reopen(instanceId: string): Promise<void>;
  /** Resolves when every record is written. */
  close(): Promise<void>;
}

export function createBreakers({ db, logger }: PartBase): Breakers {
  const windows = new Map<string, FaultWindow>();
  const writing = new Set<Promise<void>>();

  const write = (instanceId: string, work: Promise<void>): void => {
    const task = work
      .catch((error: unknown) =>
        logger.warn(
          { err: error, instance_id: instanceId },
          'the state of a breaker was not stored; other processes do not learn it',
        ),
      )
      .finally(() => writing.delete(task));
    writing.add(task);
  };

  const open = async (instanceId: string, because: OpeningReason, askedMs: number | null): Promise<void> => {
    const howLong = (openings: number): number => openMs({ openings, random: Math.random(), askedMs });
    const opened = await openBreaker(db, instanceId, { because, openMs: howLong });
    if (opened) logger.warn({ instance_id: instanceId, open_ms: opened }, 'breaker opened');
  };

  return {
    record: (instanceId, { ok, isRefused, weight, isTrial, refusal = null }) => {
      const refusedCaller = refusal?.caller;
      const outcome = { ok, isRefused, weight, refusedCaller, atMs: performance.now() };
      const { window, trips } = recordOutcome(windows.get(instanceId) ?? noFaults, outcome);
      windows.set(instanceId, window);
      if (isTrial && ok) write(instanceId, closeBreaker(db, instanceId));
      else if (trips || isTrial)
        write(instanceId, open(instanceId, isTrial ? 'trial' : 'faults', refusal?.retryAfterMs ?? null));
      if (trips || isTrial) windows.delete(instanceId);
    },
    reopen: (instanceId) => open(instanceId, 'health', null),
    close: async () => {
      await Promise.all(writing);
    },
  };
}

export interface HalfOpenProbes {
  /** Instances whose trial is due. */
  findDue(instances: readonly InstanceSnapshot[], nowMs: number): ReadonlySet<string>;
  /** A call makes the trial; no other call of this process does, in this window. */
  take(instanceId: string): void;
  /** The call did not get the trial. */
  giveBack(instanceId: string): void;
}

export interface Window {
  /** Identifies the window. */
  readonly untilMs: number;
  state: 'asked' | 'due' | 'taken';
}

export interface ProbeParts extends Pick<PartBase, 'logger'> {
  /** Reads `/health` and `/spec` of an instance. */
  readonly vet: (instanceId: string) => Promise<VetVerdict>;
  readonly breakers: Pick<Breakers, 'reopen'>;
}

const none: ReadonlySet<string> = new Set();

/**
 * Decides when a half-open breaker gets its one call although other instances could take it; otherwise an instance that
 * failed once would never be used again. `/health` is read first, once per window and while no call waits for it. Then
 * the next call that would choose the instance, if its breaker were closed, tries it. A call with a single delivery
 * does not.
 */
export function createHalfOpenProbes({ vet, breakers, logger }: ProbeParts): HalfOpenProbes {
  const windows = new Map<string, Window>();

  const ask = async (instanceId: string, window: Window): Promise<void> => {
    if ((await vet(instanceId)) === 'usable') window.state = 'due';
    else await breakers.reopen(instanceId);
  };

  const open = (instanceId: string, untilMs: number): void => {
    const window: Window = { untilMs, state: 'asked' };
    windows.set(instanceId, window);
    ask(instanceId, window).catch((error: unknown) => {
      windows.delete(instanceId); // the next call asks again
      logger.warn({ err: error, instance_id: instanceId }, 'a half-open instance could not be probed');
    });
  };

  return {
    findDue: (instances, nowMs) => {
      let due: Set<string> | null = null;
      for (const { instance_id, breaker_until_ms, state } of instances) {
        if (breaker_until_ms === null || breaker_until_ms > nowMs || state !== 'up') continue;
        const window = windows.get(instance_id);
        if (window?.untilMs !== breaker_until_ms) open(instance_id, breaker_until_ms);
        else if (window.state === 'due') due = (due ?? new Set()).add(instance_id);
      }
      return due ?? none;
    },
    take: (instanceId) => {
      const window = windows.get(instanceId);
      if (window !== undefined) window.state = 'taken';
    },
    giveBack: (instanceId) => {
      const window = windows.get(instanceId);
      if (window?.state === 'taken') window.state = 'due';
    },
  };
}
