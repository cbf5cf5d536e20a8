/**
 * Decides when a half-open breaker gets its one call although others could take it: else an instance that failed
 * once would never be used again. `/health` is read first, once per window and while no call waits for it; then the
 * next call that would choose the instance, were its breaker closed, tries it. Who only has one delivery does not.
 */
import type { Logger } from 'pino';
import type { InstanceSnapshot } from '../../core/routing/types.ts';
import type { RegistryService } from '../registry/registry-service.ts';
import type { Breakers } from './breakers.ts';

export interface HalfOpenProbes {
  /** Instances whose trial is due. */
  findDue(instances: readonly InstanceSnapshot[], nowMs: number): ReadonlySet<string>;
  /** A call tries it now; no other call of this process does, in this window. */
  take(instanceId: string): void;
  /** The call did not get it after all. */
  giveBack(instanceId: string): void;
}

interface Window {
  /** Tells one window from the next. */
  readonly untilMs: number;
  state: 'asked' | 'due' | 'taken';
}

export interface ProbeDependencies {
  readonly registry: Pick<RegistryService, 'vet'>;
  readonly breakers: Pick<Breakers, 'reopen'>;
  readonly logger: Logger;
}

const none: ReadonlySet<string> = new Set();

export function createHalfOpenProbes({ registry, breakers, logger }: ProbeDependencies): HalfOpenProbes {
  const windows = new Map<string, Window>();

  const ask = async (instanceId: string, window: Window): Promise<void> => {
    if ((await registry.vet(instanceId)) === 'usable') window.state = 'due';
    else await breakers.reopen(instanceId);
  };

  const open = (instanceId: string, untilMs: number): void => {
    const window: Window = { untilMs, state: 'asked' };
    windows.set(instanceId, window);
    ask(instanceId, window).catch((error: unknown) => {
      windows.delete(instanceId); // to be asked again
      logger.warn({ err: error, instance_id: instanceId }, 'a half-open instance could not be looked at');
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
