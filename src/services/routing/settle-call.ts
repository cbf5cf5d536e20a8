/** Writes how a delivery ended: result, cost, state of the step and event, in one statement. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Failure } from '../../contracts/primitives.ts';
import type { StepState } from '../../contracts/run.ts';
import type { Verdict } from '../../core/delivery/judge.ts';
import type { CallOutcome } from '../../core/delivery/outcome.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { settle } from '../../core/money/price.ts';
import { type AttemptEnd, settleAttempt } from '../../db/attempt.ts';
import type { Db } from '../../db/connect.ts';
import type { InstanceFeed } from '../registry/instance-feed.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SpeedRecorder } from '../registry/speed-recorder.ts';
import type { CallEnd } from './call-capability.ts';
import type { Claimed } from './claim-instance.ts';
import type { Delivery } from './deliver-call.ts';

export interface SettleDependencies {
  readonly db: Db;
  readonly feed: Pick<InstanceFeed, 'noteRelease'>;
  readonly registry: Pick<RegistryService, 'reportRefused'>;
  readonly speed: Pick<SpeedRecorder, 'recordCall'>;
  readonly logger: Logger;
}

const insistMs = 20_000;
const pauseMs = 250;

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
  'not_sent',
  'output_invalid',
  'timeout',
]);

/**
 * Repeats a write for as long as the lease can be kept alive: an answer that cost twenty minutes is not thrown
 * away because the database was gone for two seconds. Repeating is safe, the token lets it through once.
 */
const insist = async (write: () => Promise<boolean>, logger: Logger): Promise<boolean> => {
  const deadline = performance.now() + insistMs;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      logger.warn({ err: error }, 'an answer could not be stored; trying again');
      await pause(pauseMs);
    }
  }
};

/** Writes the end of the attempt and, with it, of the step. Null when the call goes on elsewhere or later. */
export const settleCall = async (
  { db, feed, registry, speed, logger }: SettleDependencies,
  { claim, instance, number }: Claimed,
  { outcome, verdict, durationMs }: Delivery,
): Promise<CallEnd | null> => {
  const { amount, certainty } = settle(instance, verdict.settlement, durationMs, claim.reserved_nano);
  const cost_usd = fromNanoUsd(amount);
  const output = outcome.kind === 'answered' ? outcome.body : undefined;
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
    step_state: stepStateOf[verdict.next],
    output,
    event_data: { endpoint: instance.endpoint, cost_usd, duration_ms: durationMs, error: verdict.error },
  };
  const settled = await insist(() => settleAttempt(db, attemptEnd), logger).finally(() =>
    feed.noteRelease(instance.instance_id),
  );
  if (outcome.kind === 'not_sent' || outcome.kind === 'lost') {
    registry
      .reportRefused(instance.instance_id)
      .catch((error: unknown) => logger.warn({ err: error }, 'an unreachable instance was not reported'));
  }
  if (instanceFaults.has(outcome.kind) || outcome.kind === 'answered') {
    speed.recordCall(instance.instance_id, { durationMs, ok: outcome.kind === 'answered' });
  }
  if (!settled) return { kind: 'closed' };
  switch (verdict.next) {
    case 'succeeded':
      return {
        kind: 'succeeded',
        output: output ?? null,
        attempt: { number, endpoint: instance.endpoint, cost_usd, duration_ms: durationMs },
      };
    case 'failed':
    case 'unknown':
      return { kind: verdict.next, error: verdict.error as Failure, isRecorded: true };
    case 'cancelled':
      return { kind: 'cancelled' };
    case 'failover':
    case 'retry':
      return null;
  }
};
