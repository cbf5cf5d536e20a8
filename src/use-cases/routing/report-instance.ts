/**
 * A breaker per instance. Each process counts its own observations and opens the breaker for all; the database lets one
 * trial through per window, and the process that made the trial closes or reopens it. Deliveries report their evidence
 * about the instance here (reportInstance).
 */
import { createHash } from 'node:crypto';
import type { CallOutcome } from '@capstan/core/call/outcome';
import type { Delivery } from '@capstan/core/call/types';
import { fromNanoUsd } from '@capstan/core/money/nano-usd';
import { weightOfTimeout } from '@capstan/core/routing/observed-calls';
import type { Ctx } from '../../context.ts';
import { recordOverrun } from '../../db/instance/instance-calls.ts';
import type { CallRequest, Claimed } from '../../parts/calls/routed-call.ts';
import { reportRefused } from '../registry/examination.ts';

// Evidence from a delivery about its instance: whether it exists, works, and how fast.

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
  ctx: Ctx,
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
    const costUsd = fromNanoUsd(amount);
    const units = (ok ? call.claimed.units({ costUsd, durationMs }) : null) ?? undefined;
    speed.recordCall(instance_id, { durationMs, costUsd, units, ok, weight });
  }
  reportResidency(ctx, call, { outcome, durationMs });
  if (verdict.says) {
    const refusal =
      outcome.kind === 'overloaded' ? { caller: callerOf(call), retryAfterMs: outcome.retryAfterMs } : null;
    const isRefused = kind === 'not_sent';
    breakers.record(instance_id, { ok: !verdict.trips, isRefused, isTrial, weight, refusal });
  }
}

/** Ends that show no work. After a timeout or a cancellation, a load may continue. */
const hasFailedToLoad: ReadonlySet<CallOutcome['kind']> = new Set([
  'rejected',
  'failed',
  'overloaded',
  'not_sent',
  'unsent',
  'withheld',
  'lost',
  'invalid',
]);

/** Before the slot of the call is free for one that would find the key. */
export function reportFailedLoad(
  { residency: recorder }: Ctx,
  { instance, residency }: Claimed,
  { outcome }: Delivery,
): void {
  if (residency?.isResident === false && hasFailedToLoad.has(outcome.kind))
    recorder.noteUnloaded(instance, residency.key);
}

function reportResidency(
  { residency: recorder }: Ctx,
  { claimed: { instance, residency } }: MadeCall,
  { outcome, durationMs }: Pick<Delivery, 'outcome' | 'durationMs'>,
): void {
  if (outcome.kind !== 'answered') return;
  if (residency !== undefined) recorder.recordCall(instance, residency, durationMs);
  if (outcome.resident !== undefined) recorder.noteReport(instance, outcome.resident);
}

/**
 * A call has cost more than the worst case that its instance declared. The ledger has it already; the count is lost with
 * a process that dies in between.
 */
export async function reportOverrun(
  { db, fleet, logger }: Ctx,
  { instance: { instance_id, endpoint }, claim: { project_id } }: Claimed,
  { amount, reserved }: Delivery,
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
