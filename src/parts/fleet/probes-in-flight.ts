/**
 * Tracks the probes and warm-ups of instances that are in flight in this process, and ends them. The functions that
 * make them are in vetting.ts, heartbeat.ts and warm-up.ts.
 */
import { setMaxListeners } from 'node:events';
import type { CapabilityProbe } from '../../clients/capability-probe.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';

export type VetVerdict = 'usable' | 'quarantined' | 'unreachable';

/** Probes, one per instance, and warm-ups in flight in this process, and the signal that ends them. */
export interface Probing {
  readonly probe: CapabilityProbe;
  /** Ends all of them. */
  readonly signal: AbortSignal;
  readonly vettings: Map<string, Promise<VetVerdict>>;
  readonly adoptions: Map<string, Promise<InstanceRow>>;
  readonly warmUps: Set<Promise<void>>;
  /** Ends what is in flight; resolves when no vetting and no warm-up is. */
  close(): Promise<void>;
}

export function createProbing(probe: CapabilityProbe): Probing {
  const abort = new AbortController();
  setMaxListeners(0, abort.signal); // every probe of a batch listens
  const vettings: Probing['vettings'] = new Map();
  const warmUps: Probing['warmUps'] = new Set();
  return {
    probe,
    signal: abort.signal,
    vettings,
    adoptions: new Map(),
    warmUps,
    close: async () => {
      abort.abort();
      await Promise.allSettled([...vettings.values(), ...warmUps]);
    },
  };
}
