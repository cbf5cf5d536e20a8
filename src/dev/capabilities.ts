/**
 * Capabilities of this machine as children of the stack, each started as its author would start it: the samples
 * that come with Capstan, and those under work.
 *
 * A capability under work runs beside the stack and is started again when files of its folder change. What was
 * changed is first tried on a port of its own, unregistered: only when it answers `/health` is the instance before
 * it ended, in order, with its calls; so what does not compile leaves the one before at work. Not both at once,
 * because the schemas of one version are the same wherever it is in service, and work on it changes them.
 */

import { existsSync, rmSync, statSync } from 'node:fs';
import { basename, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { watch } from 'chokidar';
import { CapabilityDetail, Health } from '../contracts/capability.ts';
import { choosePort } from './ports.ts';
import { findProgram } from './programs.ts';
import { createPartReport, type Report } from './progress.ts';
import type { ChildSpec } from './supervisor/child-process.ts';
import type { Supervisor } from './supervisor/supervisor.ts';

/** Where instances register and keep their files. */
interface StackAccess {
  readonly dataDir: string;
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly mediaUrl: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Where database and stack run on different machines, their clocks differ a little. */
const clockSkewMs = 5_000;

/** Whether an instance of that name has been heard of since then and is in service. */
async function isRegistered(
  name: string,
  { apiUrl, apiKey }: StackAccess,
  startedAt: Date,
): Promise<boolean> {
  const response = await fetch(`${apiUrl}/v1/capabilities/${name}`, {
    headers: { authorization: `Bearer ${apiKey}` },
    signal: AbortSignal.timeout(2_000),
  });
  if (!response.ok) return false;
  const { instances } = CapabilityDetail.parse(await response.json());
  const since = startedAt.getTime() - clockSkewMs;
  return instances.some(
    ({ state, last_heartbeat_at }) => state === 'up' && new Date(last_heartbeat_at).getTime() >= since,
  );
}

interface CapabilitySource {
  /** What the stack calls the child. */
  readonly name: string;
  readonly folder: string;
  /** A trial serves on a port of its own and registers nowhere. */
  readonly trialPort?: number;
  readonly isReady: ChildSpec['isReady'];
}

function describeCapability(source: CapabilitySource, access: StackAccess): ChildSpec {
  const { name, folder, trialPort, isReady } = source;
  const { command, args } = findProgram('cli/main');
  const isTrial = trialPort !== undefined;
  return {
    name,
    command,
    args: [...args, 'capability', 'start', folder, ...(isTrial ? ['--no-register'] : [])],
    cwd: access.dataDir,
    env: {
      ...access.environment,
      ROUTER_URL: access.apiUrl,
      ROUTER_TOKEN: access.apiKey,
      MEDIA_URL: access.mediaUrl,
      HOST: '127.0.0.1',
      PORT: isTrial ? String(trialPort) : undefined,
    },
    account: null,
    logFile: join(access.dataDir, 'logs', `${name}.log`),
    stopSignal: 'SIGTERM',
    stopGraceMs: 13_000,
    readyTimeoutMs: 60_000,
    isReady,
  };
}

interface WatchHost {
  readonly access: StackAccess;
  readonly supervisor: Supervisor;
  readonly report: Report;
}

/** Editors write a file in several steps, and tools several files. */
const quietMs = 200;

/** @throws Error when it is no folder */
export function findWatchedFolder(path: string): string {
  const folder = resolve(path);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return folder;
  throw new Error(`--watch ${path}: there is no such folder`);
}

/** What work on a capability does not touch, and what running it writes. */
function isIgnored(folder: string, path: string): boolean {
  const parts = relative(folder, path).split(sep);
  return parts.some((part) => part === 'node_modules' || part === '__pycache__' || /^\.[^.]/.test(part));
}

async function readName(port: number): Promise<string> {
  const signal = AbortSignal.timeout(2_000);
  const response = await fetch(`http://127.0.0.1:${port}/health`, { signal });
  return Health.parse(await response.json()).name;
}

/** @returns the name by which it will register @throws Error with the end of its log */
async function tryOut(name: string, folder: string, { access, supervisor }: WatchHost): Promise<string> {
  const trialPort = await choosePort([]);
  const isReady: ChildSpec['isReady'] = async () => (await readName(trialPort)) !== '';
  const trial = { name: `${name} (trial)`, folder, trialPort, isReady };
  const spec = describeCapability(trial, access);
  // What it says of earlier trials would only be in the way.
  rmSync(spec.logFile, { force: true });
  const stop = await supervisor.start(spec);
  return readName(trialPort).finally(stop);
}

interface Watched {
  readonly name: string;
  readonly folder: string;
  /** Ends the instance that runs; null when none does. */
  end: (() => Promise<void>) | null;
  isClosed: boolean;
}

/** Never throws: what is wrong is reported, and the next change is the next chance. */
async function renew(watched: Watched, host: WatchHost, why: string): Promise<void> {
  const { name, folder } = watched;
  const report = createPartReport(host.report, name);
  report('working', why);
  try {
    const capability = await tryOut(name, folder, host);
    await watched.end?.();
    watched.end = null;
    const isReady: ChildSpec['isReady'] = ({ startedAt }) => isRegistered(capability, host.access, startedAt);
    watched.end = await host.supervisor.start(describeCapability({ name, folder, isReady }, host.access));
    report('ready', `${capability}, ${why}`);
  } catch (error) {
    if (watched.isClosed) return;
    const before = watched.end === null ? 'none runs' : 'the one before goes on';
    const reason = error instanceof Error ? error.message : String(error);
    report('failed', `${why}; it does not start, ${before}: ${reason}`);
  }
}

/** Calls `onChange` when nothing more has changed for a moment, one after the other. @returns what ends it */
function followFiles(
  folder: string,
  onReady: () => Promise<void>,
  onChange: (path: string) => Promise<void>,
): { readonly ready: Promise<void>; readonly close: () => Promise<void> } {
  let last = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  const files = watch(folder, { ignored: (path) => isIgnored(folder, path), ignoreInitial: true });
  files.on('all', (_, path) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      last = last.then(() => onChange(relative(folder, path)));
    }, quietMs);
  });
  const ready = new Promise<void>((resolve) => {
    files.once('ready', () => {
      last = onReady();
      resolve(last);
    });
  });
  const close = async (): Promise<void> => {
    clearTimeout(timer);
    await files.close();
  };
  return { ready, close };
}

export interface WatchedCapability {
  /** Resolves when it runs, or has been reported not to. */
  readonly started: Promise<void>;
  /** Ends the watching; the instance ends with the stack. */
  readonly close: () => Promise<void>;
}

export function watchCapability(folder: string, host: WatchHost): WatchedCapability {
  const watched: Watched = { name: basename(folder), folder, end: null, isClosed: false };
  const { ready, close } = followFiles(
    folder,
    () => renew(watched, host, `watched in ${folder}`),
    (path) => renew(watched, host, `${path} changed`),
  );
  return {
    started: ready,
    close: () => {
      watched.isClosed = true;
      return close();
    },
  };
}

// The sample capabilities that come with Capstan.

export const sampleNames = ['concat', 'audio-mix', 'thumbnail'] as const;

/** Null when this installation carries no such sample. */
export function describeSample(name: (typeof sampleNames)[number], access: StackAccess): ChildSpec | null {
  const folder = fileURLToPath(new URL(`../../capabilities/${name}`, import.meta.url));
  if (!existsSync(folder)) return null;
  const isReady: ChildSpec['isReady'] = ({ startedAt }) => isRegistered(name, access, startedAt);
  return describeCapability({ name, folder, isReady }, access);
}
