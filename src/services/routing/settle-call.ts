/** Writes how a delivery ended: result, cost, state of the step and event, in one statement. */
import type { Logger } from 'pino';
import type { Failure, Json } from '../../contracts/primitives.ts';
import type { StepState } from '../../contracts/run.ts';
import type { Verdict } from '../../core/call/judge.ts';
import type { CallOutcome } from '../../core/call/outcome.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { settle } from '../../core/money/price.ts';
import type { AttemptEnd, Claim } from '../../db/attempt/attempt.ts';
import { insist } from '../delivery/retry-until.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SpeedRecorder } from '../registry/speed-recorder.ts';
import type { AttemptWriter } from './attempt-writer.ts';
import type { Breakers } from './breakers.ts';
import type { CallEnd, SuccessfulAttempt } from './call-capability.ts';
import type { Claimed } from './claim-instance.ts';
import type { Delivery } from './deliver-call.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';

export interface SettleDependencies {
  readonly attemptWriter: Pick<AttemptWriter, 'settle' | 'follow'>;
  readonly breakers: Pick<Breakers, 'record'>;
  readonly fleet: Pick<FleetPoller, 'noteLeaving' | 'noteRelease'>;
  readonly registry: Pick<RegistryService, 'reportRefused'>;
  readonly speed: Pick<SpeedRecorder, 'recordCall'>;
  readonly logger: Logger;
}

const stepStateOf: Record<Verdict['next'], StepState> = {
  succeeded: 'succeeded',
  failover: 'retrying',
  retry: 'retrying',
  failed: 'failed',
  unknown: 'unknown',
  cancelled: 'cancelled',
};

/** Ends that say something about the instance; a refused input or a cancel does not. */
const instanceFaults: ReadonlySet<CallOutcome['kind']> = new Set([
  'failed',
  'invalid',
  'lost',
  'malformed',
  'not_sent',
  'output_invalid',
  'timeout',
]);

/** Transport, time-outs, 5xx: what opens a breaker. */
const breakerFaults: ReadonlySet<CallOutcome['kind']> = new Set([
  'failed',
  'invalid',
  'lost',
  'not_sent',
  'overloaded',
  'timeout',
]);

/** Ends that say nothing about whether the instance works. */
const silentOutcomes: ReadonlySet<CallOutcome['kind']> = new Set([
  'abandoned',
  'cancelled',
  'unsent',
  'withheld',
]);

export interface SettledCall {
  /** Null when the call goes on elsewhere or later. */
  readonly end: CallEnd | null;
  readonly costUsd: number;
}

interface Ending extends Delivery {
  /** The step stays open, although this was its last attempt. */
  readonly isHeld: boolean;
}

/** Writes the end of the attempt and, with it, of the step. */
export async function settleCall(
  { attemptWriter, breakers, fleet, registry, speed, logger }: SettleDependencies,
  { claim, instance, number, isTrial, timeoutMs }: Claimed,
  { outcome, verdict, durationMs, isHeld }: Ending,
): Promise<SettledCall> {
  const output = outcome.kind === 'answered' ? outcome.body : undefined;
  const { amount, certainty } = settle(instance, verdict.settlement, {
    durationMs,
    reserved: claim.reserved_nano,
    reportedUsd: instance.settle === 'reported' ? (output?.cost_usd ?? null) : null,
  });
  const cost_usd = fromNanoUsd(amount);
  const attemptEnd: AttemptEnd = {
    attempt_id: claim.attempt_id,
    token: claim.token,
    state: verdict.attemptState,
    ambiguity: verdict.ambiguity,
    counted: verdict.counted,
    settled_nano: amount,
    certainty,
    duration_ms: durationMs,
    error: verdict.error,
    step_state: isHeld ? 'retrying' : stepStateOf[verdict.next],
    output: claim.step === null ? undefined : output,
    is_step: claim.step !== null,
    event_data: { endpoint: instance.endpoint, cost_usd, duration_ms: durationMs, error: verdict.error },
  };
  const isDurable = claim.step !== null || claim.reserved_nano > 0n;
  const isPatient = mayAnswerFirst(claim, verdict);
  if (isPatient) fleet.noteLeaving(instance.instance_id, 1);
  const settling = insist(() => attemptWriter.settle(attemptEnd, isDurable, isPatient), logger).finally(
    () => {
      if (isPatient) fleet.noteLeaving(instance.instance_id, -1);
      fleet.noteRelease(instance.instance_id);
    },
  );
  attemptWriter.follow(settling);
  settling.catch((error: unknown) =>
    logger.error({ err: error }, 'an end was not stored; its lease ends it'),
  );
  const settled = isPatient || (await settling) === 'settled';
  if (outcome.kind === 'not_sent' || outcome.kind === 'lost') {
    registry
      .reportRefused(instance.instance_id)
      .catch((error: unknown) => logger.warn({ err: error }, 'an unreachable instance was not reported'));
  }
  const isBlamed = outcome.kind !== 'timeout' || timeoutMs >= fairTimeMs(instance);
  if (isBlamed && (instanceFaults.has(outcome.kind) || outcome.kind === 'answered')) {
    speed.recordCall(instance.instance_id, { durationMs, ok: outcome.kind === 'answered' });
  }
  const ok = !breakerFaults.has(outcome.kind);
  if (isBlamed && !silentOutcomes.has(outcome.kind)) {
    breakers.record(instance.instance_id, { ok, isRefused: outcome.kind === 'not_sent', isTrial });
  }
  const decision = { ...claim.decision, settled_usd: cost_usd };
  const attempt = { number, endpoint: instance.endpoint, cost_usd, duration_ms: durationMs, decision };
  return { end: settled ? endOf(verdict, output ?? null, attempt) : { kind: 'closed' }, costUsd: cost_usd };
}

/** A caller that gives less time than this learns nothing about the instance from a time-out. */
function fairTimeMs({ duration_ms }: Claimed['instance']): number {
  return duration_ms === null ? 30_000 : Math.min(30_000, 4 * duration_ms);
}

/**
 * Whoever called directly, without an Idempotency-Key, is answered before the end is written: nothing is kept to answer
 * with again. Should the process die in between, the lease ends the attempt, at the price of its whole reservation.
 */
function mayAnswerFirst({ step, is_first }: Claim, { next }: Verdict): boolean {
  return step === null && is_first && next === 'succeeded';
}

function endOf(verdict: Verdict, output: Json, attempt: SuccessfulAttempt): CallEnd | null {
  switch (verdict.next) {
    case 'succeeded':
      return { kind: 'succeeded', output, attempt };
    case 'failed':
    case 'unknown':
      return {
        kind: verdict.next,
        error: verdict.error as Failure,
        isRecorded: true,
        decision: attempt.decision,
      };
    case 'cancelled':
      return { kind: 'cancelled' };
    case 'failover':
    case 'retry':
      return null;
  }
}
