/**
 * Keeps children alive and ends them in order. A child that dies is restarted with the same arguments after 0.5 s,
 * doubling to 10 s; the delay is reset after a run of 30 s. All children end when the supervisor stops, and also when
 * its own process is killed: see watchdog.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createPartReport, type Report } from '../progress.ts';
import {
  awaitReady,
  type ChildRun,
  type ChildSpec,
  type ProcessIdentity,
  readProcessMark,
  signalGroup,
  startChild,
  stopChild,
} from './child-process.ts';
import { startWatchdog, type Watchdog } from './watchdog.ts';

const restartDefaults = { firstDelayMs: 500, longestDelayMs: 10_000, steadyAfterMs: 30_000 };

export interface SupervisedProcess extends ProcessIdentity {
  readonly name: string;
  readonly stop_signal: NodeJS.Signals;
}

export interface Supervisor {
  /** Resolves when the child is ready, with a function that stops it alone. @throws Error with the end of its log */
  readonly start: (spec: ChildSpec) => Promise<() => Promise<void>>;
  /** Stops all children one by one, in reverse order of their starts. */
  readonly stop: () => Promise<void>;
  readonly processes: () => readonly SupervisedProcess[];
}

export interface SupervisorOptions {
  readonly report: Report;
  /** Removed once the supervisor's process is gone; null removes nothing. */
  readonly temporaryFolder: string | null;
  /** Called whenever a process starts or ends. */
  readonly onChange?: (processes: readonly SupervisedProcess[]) => void;
}

interface Supervised {
  readonly spec: ChildSpec;
  readonly stopping: AbortController;
  run: ChildRun;
  process: SupervisedProcess | null;
  kept: Promise<void>;
}

interface Context {
  readonly options: SupervisorOptions;
  readonly watchdog: Watchdog;
  readonly children: Supervised[];
}

/** The running children in the order of their starts. */
function listProcesses(children: readonly Supervised[]): SupervisedProcess[] {
  return children.flatMap(({ process }) => (process === null ? [] : [process]));
}

async function launch(spec: ChildSpec, { watchdog }: Context) {
  const run = await startChild(spec);
  watchdog.add(run.pid, spec.stopSignal);
  // The empty mark of an ended process matches no process.
  const mark = readProcessMark(run.pid) ?? '';
  const process = { name: spec.name, pid: run.pid, mark, stop_signal: spec.stopSignal };
  return { run, process };
}

function changed(context: Context): void {
  context.options.onChange?.(listProcesses(context.children));
}

/** Runs once for each run: later its number may belong to another process. */
function settle(child: Supervised, context: Context): void {
  if (child.process === null) return;
  signalGroup(child.run.pid, 'SIGKILL');
  context.watchdog.end(child.run.pid);
  child.process = null;
  changed(context);
}

/** False when it could not be started. */
async function restart(child: Supervised, context: Context, reason: string): Promise<boolean> {
  const { spec } = child;
  const report = createPartReport(context.options.report, spec.name);
  try {
    Object.assign(child, await launch(spec, context));
  } catch (error) {
    report('failed', String(error));
    return false;
  }
  changed(context);
  const { run } = child;
  void awaitReady(spec, run).then(
    () => report('restarted', `it had ${reason}`),
    (error: Error) => run.hasEnded() || report('failed', error.message),
  );
  return true;
}

async function keepAlive(child: Supervised, context: Context): Promise<void> {
  const { signal } = child.stopping;
  let delayMs = restartDefaults.firstDelayMs;
  let isStarted = true;
  while (!signal.aborted) {
    const reason = await child.run.ended;
    if (signal.aborted) return;
    const livedMs = isStarted ? Date.now() - child.run.startedAt.getTime() : 0;
    settle(child, context);
    if (livedMs >= restartDefaults.steadyAfterMs) delayMs = restartDefaults.firstDelayMs;
    const detail = `${reason}; starting it again in ${delayMs / 1000} s`;
    context.options.report({ part: child.spec.name, status: 'died', detail, elapsedMs: livedMs });
    await sleep(delayMs, undefined, { signal }).catch(() => undefined);
    delayMs = Math.min(delayMs * 2, restartDefaults.longestDelayMs);
    if (!signal.aborted) isStarted = await restart(child, context, reason);
  }
}

async function stopSupervised(child: Supervised, context: Context): Promise<void> {
  child.stopping.abort();
  await stopChild(child.spec, child.run);
  await child.kept;
  if (!child.run.hasEnded()) await stopChild(child.spec, child.run);
  settle(child, context);
}

/** Skips a child that is being stopped already. */
async function stopAlone(child: Supervised, context: Context): Promise<void> {
  const index = context.children.indexOf(child);
  if (index === -1) return;
  context.children.splice(index, 1);
  await stopSupervised(child, context);
}

/** @returns a function that stops the child */
async function startSupervised(spec: ChildSpec, context: Context): Promise<() => Promise<void>> {
  const launched = await launch(spec, context);
  const child: Supervised = { spec, stopping: new AbortController(), kept: Promise.resolve(), ...launched };
  context.children.push(child);
  changed(context);
  try {
    await awaitReady(spec, child.run);
  } catch (error) {
    await stopSupervised(child, context);
    const index = context.children.indexOf(child);
    if (index !== -1) context.children.splice(index, 1);
    throw error;
  }
  child.kept = keepAlive(child, context);
  return () => stopAlone(child, context);
}

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const context: Context = { options, watchdog: startWatchdog(options.temporaryFolder), children: [] };
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    let child = context.children.pop();
    for (; child !== undefined; child = context.children.pop()) await stopSupervised(child, context);
    await context.watchdog.close();
  };
  return {
    start: async (spec) => {
      if (stopped !== undefined) throw new Error(`${spec.name} is not started: the stack is stopping`);
      return startSupervised(spec, context);
    },
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
    processes: () => listProcesses(context.children),
  };
}
