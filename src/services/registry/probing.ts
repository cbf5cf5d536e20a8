/**
 * Tracks the probes of instances that are in flight in this process, and ends them. The functions that probe are in
 * vetting.ts and heartbeat.ts.
 */
import { setMaxListeners } from 'node:events';
import type { CapabilityProbe } from '../../clients/capability-probe.ts';
import type { InstanceRow } from '../../db/instance/instance.ts';

export type VetVerdict = 'usable' | 'quarantined' | 'unreachable';

/** Probes in flight in this process, one per instance, and the signal that ends them. */
export interface Probing {
  readonly probe: CapabilityProbe;
  /** Ends all probes. */
  readonly signal: AbortSignal;
  readonly vettings: Map<string, Promise<VetVerdict>>;
  readonly adoptions: Map<string, Promise<InstanceRow>>;
  /** Ends the probes in flight; resolves when no vetting is in flight. */
  close(): Promise<void>;
}

export function createProbing(probe: CapabilityProbe): Probing {
  const abort = new AbortController();
  setMaxListeners(0, abort.signal); // every probe of a batch listens
  const vettings: Probing['vettings'] = new Map();
  return {
    probe,
    signal: abort.signal,
    vettings,
    adoptions: new Map(),
    close: async () => {
      abort.abort();
      await Promise.allSettled(vettings.values());
    },
  };
}
