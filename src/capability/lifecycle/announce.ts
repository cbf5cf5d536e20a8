/** Steps 6 to 8 of the bootstrap lifecycle: the router learns of an instance, hears that it lives, and that it goes. */
import type { Settings } from '../settings.ts';
import { type Heartbeat, heartbeatIntervalMs, startHeartbeat } from './heartbeat.ts';
import { createRouterClient, type Registrable, type RouterClient } from './router-client.ts';

/** An instance that serves: in this process, or a child of it. */
export interface Serving {
  readonly facts: Registrable;
  readonly endpoint: string;
  /** Calls in work or waiting; undefined when only the instance knows. */
  queueDepth(): number | undefined;
  /** False while it is down, and is not to look alive; absent = always. */
  isServing?(): boolean;
  /** Lets calls under way end, within a grace, and stops. */
  close(): Promise<void>;
}

export interface AnnounceOptions {
  readonly settings: Settings;
  print(line: string): void;
  readonly heartbeatIntervalMs?: number;
}

async function registered(
  router: RouterClient,
  { facts, endpoint, queueDepth, isServing = () => true }: Serving,
  options: AnnounceOptions,
): Promise<Heartbeat> {
  const { name, version } = facts.spec;
  await router.register(facts, endpoint, queueDepth());
  options.print(`6/8 register: ${name} ${version} at ${options.settings.ROUTER_URL} as ${endpoint}`);
  const intervalMs = options.heartbeatIntervalMs ?? heartbeatIntervalMs;
  const beat = async (): Promise<void> => {
    if (isServing()) await router.heartbeat(name, endpoint, queueDepth());
  };
  const heartbeat = startHeartbeat(beat, intervalMs, options.print);
  options.print(`7/8 heartbeat: every ${intervalMs / 1_000} s`);
  return heartbeat;
}

function createStop(
  { facts, endpoint, close }: Serving,
  { router, heartbeat }: { readonly router: RouterClient | null; readonly heartbeat: Heartbeat | null },
  { print }: AnnounceOptions,
): () => Promise<void> {
  const stop = async (): Promise<void> => {
    heartbeat?.stop();
    const deregistered = router?.deregister(facts.spec.name, endpoint) ?? Promise.resolve();
    const outcome = await deregistered.then(
      () => (router === null ? '' : 'deregistered, '),
      (error: Error) => `deregistration failed, ignored (${error.message}), `,
    );
    await close();
    print(`8/8 stop: ${outcome}stopped`);
  };
  let stopping: Promise<void> | undefined;
  return () => {
    stopping ??= stop();
    return stopping;
  };
}

export interface Announced {
  /** Step 8, which never throws and may be asked for more than once. */
  readonly stop: () => Promise<void>;
  /** Registers once more what was away for a moment; a failure is printed and ignored. */
  readonly again: () => Promise<void>;
}

/** @throws Error when the router refuses the registration */
export async function announce(serving: Serving, options: AnnounceOptions): Promise<Announced> {
  const { ROUTER_URL, ROUTER_TOKEN = '' } = options.settings;
  const router = ROUTER_URL === undefined ? null : createRouterClient(ROUTER_URL, ROUTER_TOKEN);
  const heartbeat = router === null ? null : await registered(router, serving, options);
  if (router === null) {
    options.print('6/8 register: not registered, ROUTER_URL is not set; serving only');
    options.print('7/8 heartbeat: none, not registered');
  }
  const again = async (): Promise<void> => {
    const { facts, endpoint, queueDepth } = serving;
    await router?.register(facts, endpoint, queueDepth()).catch((error: Error) => {
      options.print(`registration failed, the next heartbeat is the next chance: ${error.message}`);
    });
  };
  return { stop: createStop(serving, { router, heartbeat }, options), again };
}
