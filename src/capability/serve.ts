import {
  type Capability,
  type CapabilityDefinition,
  defineCapability,
  isCapability,
} from './define-capability.ts';
import { runUntilSignal } from './lifecycle/run-until-signal.ts';
import { startInstance } from './lifecycle/start-instance.ts';
import type { Schema } from './schema.ts';
import { readSettings } from './settings.ts';

/**
 * Serves a capability from a stand-alone file until SIGTERM or SIGINT, then ends the process. Configured by
 * ROUTER_URL, ROUTER_TOKEN, HOST, PORT, ADVERTISE_URL and MEDIA_URL; exits 1 when the start fails, a refused
 * registration included.
 */
export async function serveCapability<I extends Schema, O extends Schema>(
  source: CapabilityDefinition<I, O> | Capability,
): Promise<never> {
  const print = (line: string): void => console.log(line);
  const capability = isCapability(source) ? source : defineCapability(source);
  return runUntilSignal(
    (signal) => startInstance(capability, { settings: readSettings(), print, signal }),
    print,
  );
}
