/**
 * A capability under work: it runs beside the stack and is started again when files of its folder change. What was
 * changed is first tried on a port of its own, unregistered: only when it answers `/health` is the instance before it
 * ended, in order, with its calls; so what does not compile leaves the one before at work. Not both at once, because
 * the schemas of one version are the same wherever it is in service, and work on it changes them.
 */
import { rmSync, statSync } from 'node:fs';
import { basename, relative, resolve, sep } from 'node:path';
import { watch } from 'chokidar';
import { Health } from '../contracts/capability.ts';
import { describeCapability, isRegistered, type StackAccess } from './capability-process.ts';
import { choosePort } from './ports.ts';
import { createPartReport, type Report } from './progress.ts';
import type { ChildSpec } from './supervisor/child-process.ts';
import type { Supervisor } from './supervisor/supervisor.ts';

export interface WatchHost {
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
