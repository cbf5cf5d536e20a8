/**
 * The capabilities of one machine, kept by this process: `capstan up`, also within `capstan dev`. This process registers
 * all instances and restarts them. It works on no call. Nothing outlives it: see dev/supervisor/watchdog.ts.
 */
import { createHash } from 'node:crypto';
import { findPort, instancePorts } from '@capstan/capability/lifecycle/start-instance';
import { localAddress, readSettings, type Settings } from '@capstan/capability/settings';
import { BoxAddress } from '@capstan/core/contracts/fleet-file';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import { startWatchdog, type Watchdog } from '../dev/supervisor/watchdog.ts';
import type { FleetPlan, PlannedInstance } from './fleet-plan.ts';
import { type BoxState, type KeptInstance, keepInstance } from './kept-instance.ts';
import { createLauncher } from './launch.ts';
import { createWrapsHost, type WrapsHost } from './wraps-host.ts';

export type BoxEvent =
  | { readonly name: string; readonly line: string }
  | { readonly name: string; readonly state: BoxState; readonly detail: string };

export interface BoxOptions {
  /** With ROUTER_URL and ROUTER_TOKEN, unless instances only serve. */
  readonly environment: NodeJS.ProcessEnv;
  readonly cacheDir: string;
  readonly stateDir: string;
  readonly report: (event: BoxEvent) => void;
}

export interface Box {
  /** Starts, stops and replaces what differs from the plan before; leaves all else alone. */
  readonly change: (plan: FleetPlan) => Promise<void>;
  /** Resolves when no instance is kept any more; true: all ended as they should. */
  readonly over: Promise<boolean>;
  /** May be called more than once. */
  readonly stop: () => Promise<void>;
  /** Ends everything at once. */
  readonly kill: () => void;
}

interface StartedInstance extends KeptInstance {
  /** What it was started with. */
  readonly given: string;
}

interface Running {
  readonly options: BoxOptions;
  readonly watchdog: Watchdog;
  readonly wraps: WrapsHost;
  readonly kept: Map<string, StartedInstance>;
  /** Ports by the name of an instance, also of one that has ended. */
  readonly ports: Map<string, number>;
  readonly onOver: (instance: StartedInstance, isRight: boolean) => void;
}

/** All ports of instances, from one on that the name decides: an instance mostly has the port of its last start. */
function portsFor(name: string, taken: ReadonlySet<number>): number[] {
  const { first, last } = instancePorts;
  const count = last - first + 1;
  const start = createHash('sha256').update(name).digest().readUInt32BE() % count;
  const ports = Array.from({ length: count }, (_, index) => first + ((start + index) % count));
  return ports.filter((port) => !taken.has(port));
}

/** Ports that the file names are given first: an instance that has such a port gets another one. */
function givePorts({ ports }: Running, { instances }: FleetPlan): void {
  const named = new Map(
    instances.flatMap(({ name, port }) => (port === null ? [] : [[port, name] as const])),
  );
  for (const [name, port] of ports) if (named.has(port)) ports.delete(name);
  for (const [port, name] of named) ports.set(name, port);
}

async function choosePort({ ports }: Running, { name }: PlannedInstance, host: string): Promise<number> {
  const taken = new Set(ports.values());
  const port = ports.get(name) ?? (await findPort(host, undefined, [...portsFor(name, taken), 0]));
  ports.set(name, port);
  return port;
}

/** @throws Error when no instance can listen at the host, or when the router could not reach the instances */
export async function readBoxSettings(
  environment: NodeJS.ProcessEnv,
  { listen }: FleetPlan,
): Promise<Settings> {
  const { host, advertise } = listen;
  const merged = { ...environment, PORT: undefined, HOST: host ?? environment.HOST };
  const settings = readSettings({ ...merged, ADVERTISE_URL: advertise ?? environment.ADVERTISE_URL });
  const address = BoxAddress.optional().safeParse(settings.ADVERTISE_URL);
  if (!address.success) throw new Error(`ADVERTISE_URL ${address.error.issues[0]?.message}`);
  await findPort(settings.HOST, 0).catch((error: Error) => {
    throw new Error(`${host === undefined ? 'HOST' : 'listen.host'}: ${error.message}`, { cause: error });
  });
  return settings;
}

function endpointOf(
  { advertiseUrl }: PlannedInstance,
  { HOST, ADVERTISE_URL }: Settings,
  port: number,
): string {
  if (advertiseUrl !== null) return withoutEndSlashes(advertiseUrl);
  if (ADVERTISE_URL === undefined) return localAddress(HOST, port);
  const url = new URL(ADVERTISE_URL);
  url.port = String(port);
  return withoutEndSlashes(url.href);
}

function givenTo({ ports }: Running, planned: PlannedInstance, settings: Settings): string {
  const port = ports.get(planned.name);
  return JSON.stringify([planned, settings.HOST, port && endpointOf(planned, settings, port)]);
}

async function keep(running: Running, planned: PlannedInstance, settings: Settings): Promise<void> {
  const { options, watchdog, wraps, kept } = running;
  const { name } = planned;
  const { HOST: host } = settings;
  const port = await choosePort(running, planned, host);
  const own = { ...options.environment, ...planned.environment, HOST: host, PORT: String(port) };
  const endpoint = endpointOf(planned, settings, port);
  const environment = { ...own, ROUTER_URL: undefined, SHARED_WITH: undefined, ADVERTISE_URL: endpoint };
  const log = (line: string): void => options.report({ name, line });
  const { cacheDir } = options;
  const instance = keepInstance({
    planned,
    endpoint,
    local: localAddress(host, port),
    settings,
    launch: createLauncher({ planned, host, port, environment, cacheDir, watchdog, log }, wraps),
    report: (state, detail) => options.report({ name, state, detail }),
    log,
  });
  const one = { ...instance, given: givenTo(running, planned, settings) };
  kept.set(name, one);
  void one.over.then((isRight) => running.onOver(one, isRight));
}

async function change(running: Running, plan: FleetPlan): Promise<void> {
  const { kept, options } = running;
  const settings = await readBoxSettings(options.environment, plan);
  givePorts(running, plan);
  const wanted = new Set(plan.instances.map((planned) => givenTo(running, planned, settings)));
  const leaving = [...kept].filter(([, { given }]) => !wanted.has(given));
  for (const [name] of leaving) kept.delete(name);
  await Promise.all(leaving.map(([, one]) => one.stop()));
  for (const planned of plan.instances) if (!kept.has(planned.name)) await keep(running, planned, settings);
}

async function stop({ kept, wraps, watchdog }: Running): Promise<void> {
  await Promise.all([...kept.values()].map((one) => one.stop()));
  await wraps.stop();
  await watchdog.close();
}

export function createBox(options: BoxOptions): Box {
  const watchdog = startWatchdog(null);
  const { environment, stateDir, report } = options;
  const hosting = { ...environment, ROUTER_URL: undefined };
  const log = (line: string): void => report({ name: 'wraps', line });
  const wraps = createWrapsHost({ environment: hosting, stateDir, watchdog, log });
  const kept = new Map<string, StartedInstance>();
  let resolveOver: (isRight: boolean) => void = () => undefined;
  const over = new Promise<boolean>((resolve) => {
    resolveOver = resolve;
  });
  const ends = new Map<StartedInstance, boolean>();
  const onOver = (instance: StartedInstance, isRight: boolean): void => {
    ends.set(instance, isRight);
    const known = [...kept.values()].map((one) => ends.get(one));
    // An instance that a change replaces is not among them.
    if (known.length > 0 && !known.includes(undefined)) resolveOver(!known.includes(false));
  };
  const running: Running = { options, watchdog, wraps, kept, ports: new Map(), onOver };
  let changing = Promise.resolve();
  let stopped: Promise<void> | undefined;
  return {
    change: (plan) => {
      const changed = changing.then(() => change(running, plan));
      changing = changed.catch(() => undefined);
      return changed;
    },
    over,
    stop: () => {
      stopped ??= changing.then(() => stop(running));
      return stopped;
    },
    kill: () => {
      for (const one of kept.values()) one.kill();
      wraps.kill();
    },
  };
}
