/**
 * Keeps one instance of the box running and registered.
 *
 * B1  Every end is reported with its reason. The instance is started again after 0.5 s; the delay doubles up to 30 s.
 * B2  60 s of service reset the delay. Five ends in a row without them are a crash loop, which is reported once.
 * B3  It has the same address in all its runs, and stays registered between them: a call that finds no server is
 *     retried, whereas a run fails when its only instance is deregistered. It registers again with each run.
 * B4  A registration that fails is repeated while the instance runs, after the same delays.
 * B5  `stop` deregisters first, then lets calls in flight end. An instance that is not started again is deregistered.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { describeInLine } from '@capstan/capability/bootstrap/start-capability';
import { delayAfter, restartDelays } from '@capstan/capability/bootstrap/start-program';
import { announce, type Registrable } from '@capstan/capability/lifecycle/registration';
import { readReport } from '@capstan/capability/lifecycle/start-instance';
import type { Settings } from '@capstan/capability/settings';
import type { Watchdog } from '../dev/supervisor/watchdog.ts';
import type { PlannedInstance } from './fleet-plan.ts';
import type { ProcessEnd } from './process-run.ts';

/** One run of an instance, whatever runs it. */
export interface InstanceRun {
  /** Resolves with the facts for its registration when it serves. */
  readonly ready: Promise<Registrable>;
  readonly ended: Promise<ProcessEnd>;
  /** Its calls in flight may end within the limit. */
  readonly stop: (limitMs: number) => Promise<void>;
  readonly kill: () => void;
}

/** Where an instance listens, and what it needs of the box. */
export interface LaunchPlace {
  readonly planned: PlannedInstance;
  readonly host: string;
  readonly port: number;
  /** With HOST and PORT, and without ROUTER_URL: `capstan up` registers all instances. */
  readonly environment: NodeJS.ProcessEnv;
  readonly cacheDir: string;
  readonly watchdog: Watchdog;
  readonly log: (line: string) => void;
}

export type BoxState =
  | 'starting'
  | 'ready'
  | 'registered'
  | 'unregistered'
  | 'restarting'
  | 'crash_loop'
  | 'finished'
  | 'gave_up'
  | 'stopping'
  | 'stopped';

export interface KeepOptions {
  readonly planned: PlannedInstance;
  readonly endpoint: string;
  /** Its address on this machine. */
  readonly local: string;
  readonly settings: Settings;
  /** @throws Error when it cannot be started */
  readonly launch: (signal: AbortSignal) => Promise<InstanceRun>;
  readonly report: (state: BoxState, detail: string) => void;
  readonly log: (line: string) => void;
  /** Default: `delayAfter`. */
  readonly pauseMs?: (failures: number) => number;
}

export interface KeptInstance {
  /** Resolves when it is not kept any more; true: as it should. */
  readonly over: Promise<boolean>;
  readonly stop: () => Promise<void>;
  readonly kill: () => void;
}

const loopLength = 5;

/** @param failures ends in a row, with this one */
export function nextStep(
  { restart, maxRestarts }: Pick<PlannedInstance, 'restart' | 'maxRestarts'>,
  { isClean, isOfOther }: Omit<ProcessEnd, 'reason'>,
  failures: number,
): 'restarting' | 'finished' | 'gave_up' {
  if (isOfOther === true) return 'restarting';
  if (restart === 'never') return isClean ? 'finished' : 'gave_up';
  if (restart === 'on_failure' && isClean) return 'finished';
  return failures > maxRestarts ? 'gave_up' : 'restarting';
}

interface RegisteredFacts {
  readonly facts: string;
  readonly stop: () => Promise<void>;
  readonly again: () => Promise<boolean>;
}

interface KeptState extends Required<KeepOptions> {
  readonly stopping: AbortController;
  run: InstanceRun | null;
  isReady: boolean;
  announced: RegisteredFacts | null;
  registering: Promise<void>;
}

function describeFacts({ spec, cost_model, max_concurrency, tags }: Registrable): string {
  const { type, rate_usd } = cost_model;
  const price = type === 'free' ? 'free' : `${rate_usd} USD ${type.replace('_', ' ')}`;
  const slots = `${max_concurrency} ${max_concurrency === 1 ? 'slot' : 'slots'}`;
  return [`${spec.name} ${spec.version}`, price, slots, ...tags].join(', ');
}

/** @throws Error when the router refuses, or does not answer */
async function tryToRegister(kept: KeptState, facts: Registrable): Promise<void> {
  const text = JSON.stringify(facts);
  if (kept.announced?.facts === text) {
    if (await kept.announced.again()) return;
    throw new Error('the router has not taken the registration');
  }
  // A changed program may have another name or version.
  await kept.announced?.stop();
  kept.announced = null;
  const print = (line: string): void => void (/^\d\/8 /.test(line) || kept.log(line));
  const serving = {
    facts,
    endpoint: kept.endpoint,
    report: () => readReport(kept.local),
    isServing: () => kept.isReady,
    close: async () => {
      if (kept.stopping.signal.aborted) await kept.run?.stop(kept.planned.stopMs);
    },
  };
  kept.announced = { facts: text, ...(await announce(serving, { settings: kept.settings, print })) };
}

/** B4 */
async function register(kept: KeptState, facts: Registrable, signal: AbortSignal): Promise<void> {
  if (kept.settings.ROUTER_URL === undefined) return;
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      await tryToRegister(kept, facts);
      return signal.aborted ? undefined : kept.report('registered', describeFacts(facts));
    } catch (error) {
      if (signal.aborted) return;
      const pauseMs = kept.pauseMs(failures);
      kept.report('unregistered', `${describeInLine(error)}; registers again in ${pauseMs / 1_000} s`);
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** @throws Error when it ends first, or is not ready in time */
async function awaitReady({ planned }: KeptState, run: InstanceRun): Promise<Registrable> {
  const waiting = new AbortController();
  const { readyMs } = planned;
  const late = sleep(readyMs, undefined, { signal: waiting.signal }).then(() => {
    throw new Error(`is not ready after ${readyMs / 1_000} s`);
  });
  const over = run.ended.then(({ reason }) => {
    throw new Error(reason);
  });
  return Promise.race([run.ready, over, late]).finally(() => waiting.abort());
}

/** From its launch to its end. */
async function serve(kept: KeptState): Promise<ProcessEnd & { readonly servedMs: number }> {
  const { signal } = kept.stopping;
  kept.report('starting', '');
  const over = new AbortController();
  try {
    const run = await kept.launch(signal);
    kept.run = run;
    run.ready.catch(() => undefined);
    signal.throwIfAborted();
    const facts = await awaitReady(kept, run);
    const readyAt = performance.now();
    kept.isReady = true;
    kept.report('ready', `at ${kept.endpoint}`);
    const registers = AbortSignal.any([signal, over.signal]);
    kept.registering = kept.registering.then(() => register(kept, facts, registers));
    const end = await run.ended;
    return { ...end, servedMs: performance.now() - readyAt };
  } catch (error) {
    kept.run?.kill();
    const end = await kept.run?.ended;
    return { isClean: false, ...end, reason: describeInLine(error), servedMs: 0 };
  } finally {
    kept.isReady = false;
    over.abort();
    kept.run = null;
  }
}

/** @returns whether it ended as it should */
async function keepRunning(kept: KeptState): Promise<boolean> {
  const { planned, report, stopping } = kept;
  let failures = 0;
  for (;;) {
    const end = await serve(kept);
    if (stopping.signal.aborted) return true;
    const isOwn = end.isOfOther !== true;
    if (isOwn) failures = end.servedMs >= restartDelays.servedMs ? 1 : failures + 1;
    const next = nextStep(planned, end, failures);
    if (next !== 'restarting') {
      const often = next === 'gave_up' && failures > 1 ? `, after ${failures} ends in a row` : '';
      report(next, `${end.reason}${often}`);
      await kept.registering;
      await kept.announced?.stop();
      return next === 'finished';
    }
    const pauseMs = kept.pauseMs(Math.max(1, failures));
    report('restarting', `${end.reason}; starts again in ${pauseMs / 1_000} s`);
    if (isOwn && failures === loopLength) {
      report(
        'crash_loop',
        `${failures} ends in a row without ${restartDelays.servedMs / 1_000} s of service`,
      );
    }
    await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    if (stopping.signal.aborted) return true;
  }
}

/** B5 */
async function stopKept(kept: KeptState, over: Promise<boolean>): Promise<void> {
  if (kept.stopping.signal.aborted) return void (await over);
  kept.report('stopping', '');
  kept.stopping.abort();
  await kept.registering;
  await kept.announced?.stop();
  await kept.run?.stop(kept.planned.stopMs);
  await over;
  kept.report('stopped', '');
}

export function keepInstance(keeping: KeepOptions): KeptInstance {
  const kept: KeptState = {
    pauseMs: delayAfter,
    ...keeping,
    stopping: new AbortController(),
    run: null,
    isReady: false,
    announced: null,
    registering: Promise.resolve(),
  };
  const over = keepRunning(kept);
  let stopped: Promise<void> | undefined;
  return {
    over,
    stop: () => {
      stopped ??= stopKept(kept, over);
      return stopped;
    },
    kill: () => kept.run?.kill(),
  };
}
