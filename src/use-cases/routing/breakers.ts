/**
 * A breaker per instance. Each process counts its own observations and opens the breaker for all; the database lets one
 * trial through per window, and the process that made the trial closes or reopens it. Deliveries report their evidence
 * about the instance here (reportInstance).
 */
import { createHash } from 'node:crypto';
import type { Delivery } from '../../core/call/types.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { type FaultWindow, noFaults, openMs, recordOutcome } from '../../core/routing/breaker.ts';
import { weightOfTimeout } from '../../core/routing/observed-calls.ts';
import type { InstanceSnapshot } from '../../core/routing/types.ts';
import {
  closeBreaker,
  type OpeningReason,
  openBreaker,
  recordOverrun,
} from '../../db/instance/instance-calls.ts';
import type { Ctx } from '../../context.ts';
import { reportRefused } from '../registry/examination.ts';
import type { VetVerdict } from '../../parts/fleet/probing.ts';
import type { CallRequest, Claimed, RoutingCtx } from './routed-call.ts';

interface CallReport {
  readonly ok: boolean;
  /** No connection was made. */
  readonly isRefused: boolean;
  /** Weight of the evidence, at most 1. */
  readonly weight: number;
  readonly isTrial: boolean;
  /** Of a call that the instance refused for now. */
  readonly refusal?: RefusalForNow | null;
}

interface RefusalForNow {
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
  settled(): Promise<void>;
}

export function createBreakers({ db, logger }: Pick<Ctx, 'db' | 'logger'>): Breakers {
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
    settled: async () => {
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

interface Window {
  /** Identifies the window. */
  readonly untilMs: number;
  state: 'asked' | 'due' | 'taken';
}

interface ProbeParts extends Pick<Ctx, 'logger'> {
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

// Evidence from a delivery about its instance: whether it is there, works, and how fast.

function callerOf({ request: { projectId, input }, claimed: { claim } }: MadeCall): string {
  if (claim.run_id !== null) return claim.run_id;
  return createHash('sha256')
    .update(JSON.stringify([projectId, input]))
    .digest('hex');
}

/** A call, and what it has claimed. */
interface MadeCall {
  readonly request: CallRequest;
  readonly claimed: Claimed;
}

/** Reports the end of a call in the background: the call does not wait for it. */
export function reportInstance(
  ctx: RoutingCtx,
  call: MadeCall,
  { outcome, verdict, durationMs, amount }: Delivery,
): void {
  const { instance, isTrial, timeoutMs } = call.claimed;
  const { kind } = outcome;
  const { fleet, speed, breakers, logger } = ctx;
  const { instance_id } = instance;
  if (kind === 'not_sent' || kind === 'lost') {
    reportRefused(ctx, instance_id).catch((error: unknown) =>
      logger.warn({ err: error }, 'an unreachable instance was not reported'),
    );
  }
  const ok = kind === 'answered';
  const weight =
    kind === 'timeout'
      ? weightOfTimeout(
          timeoutMs,
          instance,
          fleet.seenBy(call.claimed.claim.project_id).of(instance.name).priorMs,
        )
      : 1;
  if (ok || verdict.blames) {
    speed.recordCall(instance_id, { durationMs, costUsd: fromNanoUsd(amount), ok, weight });
  }
  if (verdict.says) {
    const refusal =
      outcome.kind === 'overloaded' ? { caller: callerOf(call), retryAfterMs: outcome.retryAfterMs } : null;
    const isRefused = kind === 'not_sent';
    breakers.record(instance_id, { ok: !verdict.trips, isRefused, isTrial, weight, refusal });
  }
}

/**
 * A call has cost more than the worst case that its instance declared. The ledger has it already; the count is lost with
 * a process that dies in between.
 */
export async function reportOverrun(
  { db, fleet, logger }: RoutingCtx,
  { instance: { instance_id, endpoint }, claim: { project_id }, reserved }: Claimed,
  { amount }: Delivery,
): Promise<void> {
  const [reserved_usd, settled_usd] = [fromNanoUsd(reserved), fromNanoUsd(amount)];
  logger.warn({ instance_id, endpoint, reserved_usd, settled_usd }, 'a call cost more than its worst case');
  try {
    await recordOverrun(db, instance_id, project_id);
    await fleet.refresh(); // the third lets the next call reserve the rate
  } catch (error) {
    logger.error({ err: error, instance_id }, 'a cost above the worst case was not counted');
  }
}
