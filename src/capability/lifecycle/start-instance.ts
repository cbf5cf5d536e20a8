/**
 * Steps 2 to 8 of the bootstrap lifecycle, in order, one printed line each. A stand-alone file (`serveCapability`)
 * and the bootstrap of a package (`startCapability`) both run exactly this.
 */
import { resolve } from 'node:path';
import type { Capability } from '../define-capability.ts';
import { createInstanceServer } from '../http-server.ts';
import { defaultBodyLimits, type JsonBounds } from '../json-body.ts';
import { createMediaTransfer } from '../media/media-transfer.ts';
import { localAddress, type Settings } from '../settings.ts';
import { announce } from './announce.ts';
import { bindServer } from './bind.ts';
import { checkPrerequisites, installPrerequisites } from './prerequisites.ts';
import { waitUntilReady } from './readiness.ts';
import { graceMs, stopServer } from './shutdown.ts';

export const defaultCacheDir = '.capstan/cache';

export interface InstanceOptions {
  readonly settings: Settings;
  print(line: string): void;
  /** Default `.capstan/cache` in the working directory. */
  readonly cacheDir?: string;
  /** Gives up the start; a running instance is stopped by `stop`. */
  readonly signal?: AbortSignal;
  readonly bodyLimits?: JsonBounds;
  readonly heartbeatIntervalMs?: number;
  readonly readinessIntervalMs?: number;
  readonly graceMs?: number;
}

export interface RunningInstance {
  /** As registered, without a slash at the end. */
  readonly endpoint: string;
  /** Deregisters (a failure is ignored), ends open calls within the grace, closes. Never throws. */
  stop(): Promise<void>;
  /** Aborts every open call at once. */
  abortCalls(): void;
}

async function bind(capability: Capability, cacheDir: string, options: InstanceOptions) {
  const { settings, print } = options;
  const transfer = await createMediaTransfer(settings.MEDIA_URL, settings.ROUTER_TOKEN);
  const bodyLimits = options.bodyLimits ?? defaultBodyLimits;
  const server = createInstanceServer(capability, { transfer, cacheDir, log: print, bodyLimits });
  const port = await bindServer(server.http, settings.HOST, settings.PORT);
  const local = localAddress(settings.HOST, port);
  print(`4/8 bind: listening on ${local}`);
  return { server, local, endpoint: (settings.ADVERTISE_URL ?? local).replace(/(?<!\/)\/+$/, '') };
}

/** @throws Error when a step fails; nothing is left running then */
export async function startInstance(
  capability: Capability,
  options: InstanceOptions,
): Promise<RunningInstance> {
  const { print, signal = new AbortController().signal } = options;
  const host = { cacheDir: resolve(options.cacheDir ?? defaultCacheDir), signal };
  const { missing, summary } = await checkPrerequisites(capability.prerequisites, host);
  print(`2/8 prerequisites: ${summary}`);
  print(`3/8 install: ${await installPrerequisites(missing, host)}`);
  signal.throwIfAborted();
  const { server, local, endpoint } = await bind(capability, host.cacheDir, options);
  try {
    const attempts = await waitUntilReady(`${local}/health`, options.readinessIntervalMs);
    print(`5/8 ready: GET /health answered at attempt ${attempts}`);
    signal.throwIfAborted();
    const close = () => stopServer(server, options.graceMs ?? graceMs);
    const serving = { facts: capability, endpoint, queueDepth: server.queueDepth, close };
    const { stop } = await announce(serving, options);
    return { endpoint, stop, abortCalls: server.abortCalls };
  } catch (error) {
    await stopServer(server, 0);
    throw error;
  }
}
