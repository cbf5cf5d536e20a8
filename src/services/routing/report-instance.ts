/** What a delivery says about the instance that it went to: whether it is there, works, and how fast. */
import type { Logger } from 'pino';
import type { Delivery } from '../../core/call/types.ts';
import type { InstanceSnapshot } from '../../core/routing/types.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SpeedRecorder } from '../registry/speed-recorder.ts';
import type { Breakers } from './breakers.ts';
import type { Claimed } from './routed-call.ts';

export interface ReportDependencies {
  readonly registry: Pick<RegistryService, 'reportRefused'>;
  readonly speed: Pick<SpeedRecorder, 'recordCall'>;
  readonly breakers: Pick<Breakers, 'record'>;
  readonly logger: Logger;
}

/** Nothing here is waited for: the call goes on with its answer. */
export function reportInstance(
  { registry, speed, breakers, logger }: ReportDependencies,
  { instance, isTrial, timeoutMs }: Claimed,
  { outcome: { kind }, verdict, durationMs }: Delivery,
): void {
  const { instance_id } = instance;
  if (kind === 'not_sent' || kind === 'lost') {
    registry
      .reportRefused(instance_id)
      .catch((error: unknown) => logger.warn({ err: error }, 'an unreachable instance was not reported'));
  }
  if (kind === 'timeout' && timeoutMs < fairTimeMs(instance)) return;
  const isAnswered = kind === 'answered';
  if (isAnswered || verdict.blames) speed.recordCall(instance_id, { durationMs, ok: isAnswered });
  if (verdict.says) {
    breakers.record(instance_id, { ok: !verdict.trips, isRefused: kind === 'not_sent', isTrial });
  }
}

/** A caller that gives less time than this learns nothing about the instance from a time-out. */
function fairTimeMs({ duration_ms }: InstanceSnapshot): number {
  return duration_ms === null ? 30_000 : Math.min(30_000, 4 * duration_ms);
}
