/** What a delivery says about the instance that it went to: whether it is there, works, and how fast. */
import type { Logger } from 'pino';
import type { Delivery } from '../../core/call/types.ts';
import { fromNanoUsd } from '../../core/money/nano-usd.ts';
import { weightOfTimeout } from '../../core/routing/hang.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { SpeedRecorder } from '../registry/speed-recorder.ts';
import type { Breakers } from './breakers.ts';
import type { FleetPoller } from './fleet/fleet-poller.ts';
import type { Claimed } from './routed-call.ts';

export interface ReportDependencies {
  readonly fleet: Pick<FleetPoller, 'of'>;
  readonly registry: Pick<RegistryService, 'reportRefused'>;
  readonly speed: Pick<SpeedRecorder, 'recordCall'>;
  readonly breakers: Pick<Breakers, 'record'>;
  readonly logger: Logger;
}

/** Nothing here is waited for: the call goes on with its answer. */
export function reportInstance(
  { fleet, registry, speed, breakers, logger }: ReportDependencies,
  { instance, isTrial, timeoutMs }: Claimed,
  { outcome: { kind }, verdict, durationMs, amount }: Delivery,
): void {
  const { instance_id } = instance;
  if (kind === 'not_sent' || kind === 'lost') {
    registry
      .reportRefused(instance_id)
      .catch((error: unknown) => logger.warn({ err: error }, 'an unreachable instance was not reported'));
  }
  const ok = kind === 'answered';
  const weight =
    kind === 'timeout' ? weightOfTimeout(timeoutMs, instance, fleet.of(instance.name).priorMs) : 1;
  if (ok || verdict.blames) {
    speed.recordCall(instance_id, { durationMs, costUsd: fromNanoUsd(amount), ok, weight });
  }
  if (verdict.says) {
    breakers.record(instance_id, { ok: !verdict.trips, isRefused: kind === 'not_sent', isTrial, weight });
  }
}
