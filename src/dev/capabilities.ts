/**
 * Capabilities of this machine as children of the stack, each started as its author would start it: the samples of
 * Capstan, and watched folders.
 *
 * A watched capability runs beside the stack and is restarted when files of its folder change. The changed version is
 * first started on a port of its own, unregistered. Only when it answers `/health` does the previous instance stop,
 * after finishing its calls; if it does not start, the previous instance keeps running. The new one registers after the
 * previous one has stopped, because all instances of one version must have the same schemas, which the change may
 * affect.
 */

import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CapabilityDetail, Health } from '@capstan/core/contracts/capability';
import { isRoutable } from '@capstan/core/fleet/instance-states';
import { watch } from 'chokidar';
import { choosePort } from './ports.ts';
import { findProgram } from './programs.ts';
import { createPartReport, type Report } from './progress.ts';
import type { ChildSpec } from './supervisor/child-process.ts';
import type { Supervisor } from './supervisor/supervisor.ts';

/** The addresses and the key for instances: where they register and store files. */
interface StackAccess {
  readonly dataDir: string;
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly mediaUrl: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Tolerated clock difference: database and stack may run on different machines. */
const clockSkewMs = 5_000;

/** True when an instance of that name is in service and was seen since then. */
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
    ({ state, last_heartbeat_at }) => isRoutable(state) && new Date(last_heartbeat_at).getTime() >= since,
  );
}

interface CapabilitySource {
  /** The child's name in the stack. */
  readonly name: string;
  readonly folder: string;
  /** Port of a trial, which does not register. */
  readonly trialPort?: number;
  readonly isReady: ChildSpec['isReady'];
  /** Default: it serves the project of the stack's key. */
  readonly sharedWith?: 'all';
}

function describeCapability(source: CapabilitySource, access: StackAccess): ChildSpec {
  const { name, folder, trialPort, isReady, sharedWith } = source;
  const { command, args } = findProgram('cli/main');
  const isTrial = trialPort !== undefined;
  return {
    name,
    command,
    args: [...args, 'capability', 'start', folder, '--in-process', ...(isTrial ? ['--no-register'] : [])],
    cwd: access.dataDir,
    env: {
      ...access.environment,
      ROUTER_URL: access.apiUrl,
      ROUTER_TOKEN: access.apiKey,
      MEDIA_URL: access.mediaUrl,
      ...(sharedWith === undefined ? {} : { SHARED_WITH: sharedWith }),
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

/** Editors write a file in several steps, and tools write several files. */
const quietMs = 200;

const entries = ['package.json', 'index.ts', 'index.js'];

function isCapability(folder: string): boolean {
  return entries.some((entry) => existsSync(join(folder, entry)));
}

/** The folder, or the folders of capabilities in it. @throws Error when it is not a folder */
export function findWatchedFolders(path: string): readonly string[] {
  const folder = resolve(path);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new Error(`--watch ${path}: there is no such folder`);
  }
  const inside = readdirSync(folder).map((name) => join(folder, name));
  const capabilities = isCapability(folder) ? [] : inside.filter(isCapability);
  return capabilities.length === 0 ? [folder] : capabilities;
}

/** Ignores dependencies, and files that a running capability writes. */
function isIgnored(folder: string, path: string): boolean {
  const parts = relative(folder, path).split(sep);
  return parts.some((part) => part === 'node_modules' || part === '__pycache__' || /^\.[^.]/.test(part));
}

async function readName(port: number): Promise<string> {
  const signal = AbortSignal.timeout(2_000);
  const response = await fetch(`http://127.0.0.1:${port}/health`, { signal });
  return Health.parse(await response.json()).name;
}

/** @returns the name under which it will register @throws Error with the end of its log */
async function tryOut(name: string, folder: string, { access, supervisor }: WatchHost): Promise<string> {
  const trialPort = await choosePort([]);
  const isReady: ChildSpec['isReady'] = async () => (await readName(trialPort)) !== '';
  const trial = { name: `${name} (trial)`, folder, trialPort, isReady };
  const spec = describeCapability(trial, access);
  // Removes the output of earlier trials.
  rmSync(spec.logFile, { force: true });
  const stop = await supervisor.start(spec);
  return readName(trialPort).finally(stop);
}

interface Watched {
  readonly name: string;
  readonly folder: string;
  /** Ends the running instance; null when none runs. */
  end: (() => Promise<void>) | null;
  isClosed: boolean;
}

/** Never throws: errors are reported, and the next change is the next chance. */
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

/** Calls `onChange` when no file has changed for a moment, one call at a time. @returns stops that */
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
  /** Resolves when it runs, or when its failure has been reported. */
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

// The sample capabilities of Capstan: free and without state, so they serve all projects.

export const sampleNames = ['concat', 'audio-mix', 'thumbnail'] as const;

/** Null when this installation does not include the sample. */
export function describeSample(name: (typeof sampleNames)[number], access: StackAccess): ChildSpec | null {
  const folder = fileURLToPath(new URL(`../../capabilities/${name}`, import.meta.url));
  if (!existsSync(folder)) return null;
  const isReady: ChildSpec['isReady'] = ({ startedAt }) => isRegistered(name, access, startedAt);
  return describeCapability({ name, folder, isReady, sharedWith: 'all' }, access);
}
