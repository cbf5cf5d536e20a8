/**
 * A capability as a process of its own. SIGTERM or SIGINT stops it gracefully, a second signal immediately. The signal
 * handlers are installed before the start, so that no signal prevents the deregistration.
 */

import {
  type Capability,
  type CapabilityDefinition,
  defineCapability,
  isCapability,
} from './define-capability.ts';
import { type RunningInstance, startInstance } from './lifecycle/start-instance.ts';
import type { Schema } from './schema.ts';
import { readSettings } from './settings.ts';

const signals = ['SIGTERM', 'SIGINT'] as const;

/**
 * Runs until a signal, then ends the process: 0 after a graceful stop; 1 when the start failed or a second signal came.
 */
export async function runUntilSignal(
  start: (signal: AbortSignal) => Promise<RunningInstance>,
  print: (line: string) => void,
  stopsOn: readonly NodeJS.Signals[] = signals,
): Promise<never> {
  const stopping = new AbortController();
  let instance: RunningInstance | undefined;
  const stopped = new Promise<void>((resolve) => {
    const onSignal = (name: string): void => {
      if (stopping.signal.aborted) {
        instance?.abortCalls();
        process.exit(1);
      }
      print(`${name}: stopping; once more stops at once`);
      stopping.abort(new Error(`stopped by ${name}`));
      resolve();
    };
    for (const signal of stopsOn) process.on(signal, onSignal);
  });
  try {
    instance = await start(stopping.signal);
    await stopped;
    await instance.stop();
  } catch (error) {
    if (stopping.signal.aborted) process.exit(0);
    print(`the instance did not start: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
  process.exit(0);
}

/**
 * Serves a capability until SIGTERM or SIGINT, then ends the process. Call it at the end of a stand-alone file.
 *
 * It reads ROUTER_URL, ROUTER_TOKEN, HOST, PORT, ADVERTISE_URL, SHARED_WITH and MEDIA_URL from the environment; without
 * ROUTER_URL it serves only. The process exits with 1 when the start fails, which includes a refused registration.
 * @param source a definition, or the result of `defineCapability`
 */
export function serveCapability(source: Capability): Promise<never>;
export function serveCapability<I extends Schema, O extends Schema>(
  source: CapabilityDefinition<I, O>,
): Promise<never>;
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
