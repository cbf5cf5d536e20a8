/**
 * Steps 2 to 8 of the bootstrap lifecycle, in order, one printed line each. A stand-alone file (`serveCapability`) and
 * the bootstrap of a package (`startCapability`) both run these steps. This file holds binding (step 4), readiness
 * (step 5) and the stop; prerequisites.ts has steps 2 and 3, registration.ts steps 6 to 8.
 *
 * A stopping instance keeps serving until it is deregistered. Then it finishes its calls, aborts the rest after a grace
 * period, and closes.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Health } from '@capstan/core/contracts/capability';
import { describeTakenPort } from '@capstan/core/errors/taken-port';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import type { Capability } from '../define-capability.ts';
import {
  createInstanceServer,
  defaultBodyLimits,
  type InstanceServer,
  type JsonBounds,
} from '../http-server.ts';
import { createMediaTransfer } from '../media/media-transfer.ts';
import { localAddress, type Settings } from '../settings.ts';
import { checkPrerequisites, installPrerequisites } from './prerequisites.ts';
import { announce, describeFault, type HealthReport } from './registration.ts';

// Step 4 of the bootstrap: listen on the given port, or on a random free one of 8100 to 8200.

/** The ports of instances, of which one is chosen. */
export const instancePorts = { first: 8_100, last: 8_200 } as const;
const { first: firstPort, last: lastPort } = instancePorts;

async function listen(server: Server, host: string, port: number): Promise<number> {
  server.listen(port, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function isTaken(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && (error.code === 'EADDRINUSE' || error.code === 'EACCES')
  );
}

function shuffledPorts(): number[] {
  return Array.from({ length: lastPort - firstPort + 1 }, (_, i) => ({
    port: firstPort + i,
    rank: Math.random(),
  }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ port }) => port);
}

/** Why nothing can listen there. */
function describeBindFault(error: unknown, host: string, port: number): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return describeTakenPort(port);
  if (code === 'EACCES') return `this user may not open port ${port} of ${host} (EACCES)`;
  if (code === 'EADDRNOTAVAIL') return `${host} is no address of this machine (${code})`;
  return code === 'ENOTFOUND' || code === 'EAI_AGAIN' ? `the name ${host} has no address (${code})` : message;
}

/**
 * @throws Error when the host is no address of this machine, and when the given port, or every port of the range, is in
 * use: of a given port with the process that holds it
 */
export async function bindServer(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number | undefined },
  candidates: readonly number[] = shuffledPorts(),
): Promise<number> {
  for (const candidate of port === undefined ? candidates : [port]) {
    try {
      return await listen(server, host, candidate);
    } catch (error) {
      if (port !== undefined || !isTaken(error))
        throw new Error(describeBindFault(error, host, candidate), { cause: error });
    }
  }
  throw new Error(`every port from ${firstPort} to ${lastPort} of ${host} is taken`);
}

/** A port that is free now; a program binds it a moment later. */
export async function findPort(
  host: string,
  port: number | undefined,
  candidates?: readonly number[],
): Promise<number> {
  const server = createServer();
  const found = await bindServer(server, { host, port }, candidates);
  await new Promise((resolve) => server.close(resolve));
  return found;
}

// Step 5 of the bootstrap: `GET /health` on this machine, up to 10 times, 1 second apart, the first at once.

const readinessAttempts = 10;
const readinessIntervalMs = 1_000;

const shownCharacters = 200;

/** @returns the answer if it is not status ok; null when healthy */
export async function findHealthFault(healthUrl: string, timeoutMs: number): Promise<string | null> {
  try {
    const response = await fetch(healthUrl, { signal: AbortSignal.timeout(timeoutMs) });
    const text = await response.text();
    if (response.ok && isHealthy(text)) return null;
    return `answered with HTTP ${response.status} ${text.slice(0, shownCharacters).trim()}`.trimEnd();
  } catch (error) {
    return `not answered: ${describeFault(error)}`;
  }
}

/** Without the queue: its depth would be old when it arrives. */
const Reported = Health.pick({ resident: true });

/** What an instance in another process reports. @param local its address on this machine */
export async function readReport(local: string): Promise<HealthReport> {
  try {
    const response = await fetch(`${local}/health`, { signal: AbortSignal.timeout(readinessIntervalMs) });
    return Reported.parse(await response.json());
  } catch {
    return {};
  }
}

function isHealthy(text: string): boolean {
  try {
    const health: unknown = JSON.parse(text);
    return typeof health === 'object' && Reflect.get(health ?? {}, 'status') === 'ok';
  } catch {
    return false;
  }
}

/** @returns the number of attempts @throws Error when no attempt was answered with status ok */
export async function waitUntilReady(
  healthUrl: string,
  intervalMs: number = readinessIntervalMs,
): Promise<number> {
  let fault: string | null = null;
  for (let attempt = 1; attempt <= readinessAttempts; attempt += 1) {
    const started = Date.now();
    fault = await findHealthFault(healthUrl, intervalMs);
    if (fault === null) return attempt;
    if (attempt < readinessAttempts) await sleep(Math.max(0, intervalMs - (Date.now() - started)));
  }
  const seen = `the last one was ${fault}`;
  throw new Error(
    `GET ${healthUrl} was not answered with status ok in ${readinessAttempts} attempts; ${seen}`,
  );
}

/** Time for open calls to end by themselves, then for aborted calls to clean up. */
export const graceMs = 10_000;
const cleanUpMs = 2_000;

/** Stops an instance that is deregistered: finishes its calls, aborts the rest after a grace period, and closes. */
async function stopServer(server: InstanceServer, limitMs: number = graceMs): Promise<void> {
  const closed = once(server.http, 'close').then(() => true);
  server.close();
  const within = (ms: number): Promise<boolean> => {
    const waiting = new AbortController();
    const late = sleep(ms, false, { signal: waiting.signal }).catch(() => false);
    return Promise.race([closed, late]).finally(() => waiting.abort());
  };
  if (await within(limitMs)) return;
  server.abortCalls();
  if (await within(cleanUpMs)) return;
  server.http.closeAllConnections();
}

export const defaultCacheDir = '.capstan/cache';
/** Options of `startInstance`. */
export interface InstanceOptions {
  /** Usually `readSettings()`. */
  readonly settings: Settings;
  /** Receives one line per step of the start, and later log lines. */
  print(line: string): void;
  /** Folder for installed prerequisites; default `.capstan/cache` in the working directory. */
  readonly cacheDir?: string;
  /** Aborts the start. Use `stop` for a running instance. */
  readonly signal?: AbortSignal;
  /** Limits of a request body; default 16 MiB and 64 levels of nesting. */
  readonly bodyLimits?: JsonBounds;
  /** Default 60,000. */
  readonly heartbeatIntervalMs?: number;
  /** Delay between two readiness checks; default 1,000. */
  readonly readinessIntervalMs?: number;
  /** Time for open calls to end on `stop`; default 10,000. */
  readonly graceMs?: number;
}

/** An instance that listens and, if ROUTER_URL is set, is registered. */
export interface RunningInstance {
  /** The registered address, without a trailing slash. */
  readonly endpoint: string;
  /** Deregisters (a failure is ignored), ends open calls within the grace period, closes. Never throws. */
  stop(): Promise<void>;
  /** Aborts every open call immediately; their callers get 503. */
  abortCalls(): void;
}

async function bind(capability: Capability, cacheDir: string, options: InstanceOptions) {
  const { settings, print } = options;
  const transfer = await createMediaTransfer(settings.MEDIA_URL, settings.ROUTER_TOKEN);
  const bodyLimits = options.bodyLimits ?? defaultBodyLimits;
  const own = localAddress(settings.HOST, 0);
  const names = [own, settings.ADVERTISE_URL ?? own].map((url) => new URL(url).hostname);
  const server = createInstanceServer(capability, { transfer, cacheDir, log: print, bodyLimits, names });
  const port = await bindServer(server.http, { host: settings.HOST, port: settings.PORT });
  const local = localAddress(settings.HOST, port);
  print(`4/8 bind: listening on ${local}`);
  return { server, local, endpoint: withoutEndSlashes(settings.ADVERTISE_URL ?? local) };
}

/**
 * Starts an instance in this process: prerequisites, listening, readiness, registration, heartbeats. Use it when you
 * need `stop` or several instances in one process; `serveCapability` also handles signals.
 * @throws Error when a step fails; everything started so far is stopped then
 */
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
    const serving = { facts: capability, endpoint, report: server.report, close };
    const { stop } = await announce(serving, options);
    return { endpoint, stop, abortCalls: server.abortCalls };
  } catch (error) {
    await stopServer(server, 0);
    throw error;
  }
}
