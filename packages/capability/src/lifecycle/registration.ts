/**
 * Steps 6 to 8 of the bootstrap lifecycle: the instance registers at the router, sends a heartbeat every 60 seconds,
 * and deregisters. Nothing is retried: the next heartbeat is the next chance.
 */
import type { Health, Registration } from '@capstan/core/contracts/capability';
import { heartbeatSeconds } from '@capstan/core/contracts/limits';
import { withoutEndSlashes } from '@capstan/core/expression/language';
import type { Capability } from '../define-capability.ts';
import { readSharedWith, type Settings } from '../settings.ts';

/** Step 7 of the bootstrap: a heartbeat every 60 seconds. A failed one is ignored, as the specification requires. */

const heartbeatIntervalMs = heartbeatSeconds * 1_000;

interface Heartbeat {
  stop(): void;
}

/** @param log reports the first failure after a success, and the recovery */
function startHeartbeat(
  beat: () => Promise<void>,
  intervalMs: number,
  log: (line: string) => void,
): Heartbeat {
  let isFailing = false;
  const run = async (): Promise<void> => {
    try {
      await beat();
      if (isFailing) log('the router takes heartbeats again');
      isFailing = false;
    } catch (error) {
      if (!isFailing) log(`heartbeat failed, ignored: ${error instanceof Error ? error.message : error}`);
      isFailing = true;
    }
  };
  const timer = setInterval(() => void run(), intervalMs);
  return { stop: () => clearInterval(timer) };
}

// The instance's requests to the router.

export type Registrable = Pick<
  Capability,
  'spec' | 'cost_model' | 'tags' | 'max_concurrency' | 'settle' | 'warm_up' | 'shared_with' | 'max_resident'
> &
  Pick<Partial<Registration>, 'host' | 'takes'>;

/** What an instance reports in `/health`, registrations and heartbeats. */
export type HealthReport = Pick<Health, 'queue_depth' | 'resident'>;

interface RouterClient {
  /** @throws Error unless the router answered 2xx, like the other methods */
  register(facts: Registrable, endpoint: string, report: HealthReport): Promise<void>;
  /** @returns whether the router did not know the instance, and has read its spec in place of a registration */
  heartbeat(name: string, endpoint: string, report: HealthReport): Promise<boolean>;
  /** @returns whether the router took it for one of an earlier instance, because this one still answers */
  deregister(name: string, endpoint: string): Promise<boolean>;
}

const timeoutMs = { register: 30_000, heartbeat: 10_000, deregister: 5_000 };

/** Undefined when the text is no JSON object, or has no such field. */
function fieldOf(text: string, name: string): unknown {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === 'object' ? Reflect.get(answer ?? {}, name) : undefined;
  } catch {
    return undefined;
  }
}

/** The reason in a problem+json answer, else the start of the text. */
function reasonOf(text: string): string {
  const detail = fieldOf(text, 'detail');
  return typeof detail === 'string' ? detail : text.slice(0, 200);
}

/** The message with its cause, which holds the reason of a failed fetch. */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

interface RouterMessage {
  readonly body: object;
  /** After which the router has not answered. */
  readonly limitMs: number;
}

/** @returns sends a message to the router, and reads the text of its answer @throws Error unless it answered 2xx */
function createRouterCall(token: string) {
  return async (method: string, url: string, { body, limitMs }: RouterMessage): Promise<string> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(limitMs);
    const request = { method, headers, body: JSON.stringify(body), redirect: 'error', signal } as const;
    const response = await fetch(url, request).catch((error: unknown) => {
      throw new Error(`${method} ${url}: ${describeFault(error)}`, { cause: error });
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${url} was answered ${response.status}: ${reasonOf(text)}`);
    return text;
  };
}

function createRouterClient(routerUrl: string, token: string): RouterClient {
  const base = `${withoutEndSlashes(routerUrl)}/v1/capabilities`;
  const call = createRouterCall(token);

  return {
    register: async (
      { spec, cost_model, tags, max_concurrency, settle, ...optional },
      endpoint,
      { queue_depth, resident },
    ) => {
      const { warm_up, shared_with, host, takes, max_resident } = optional;
      const { name, version } = spec;
      const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
      const always = { name, version, ...urls, cost_model, tags, max_concurrency, queue_depth };
      const body = { ...always, warm_up, shared_with, host, takes, max_resident, resident };
      const sent = settle === 'reported' ? { ...body, settle } : body;
      await call('POST', base, { body: sent, limitMs: timeoutMs.register });
    },
    heartbeat: async (name, endpoint, { queue_depth, resident }) => {
      const body = { endpoint, queue_depth, resident };
      const text = await call('POST', `${base}/${name}/heartbeat`, { body, limitMs: timeoutMs.heartbeat });
      return fieldOf(text, 'adopted') === true;
    },
    deregister: async (name, endpoint) => {
      const text = await call('DELETE', `${base}/${name}`, {
        body: { endpoint },
        limitMs: timeoutMs.deregister,
      });
      return fieldOf(text, 'stale') === true;
    },
  };
}

/** A running instance: in this process, or a child of it. */
interface Serving {
  readonly facts: Registrable;
  readonly endpoint: string;
  /** Never rejects. */
  report(): HealthReport | Promise<HealthReport>;
  /** False while it is down, so that no heartbeats are sent; absent: always true. */
  isServing?(): boolean;
  /** Lets calls in flight end within a grace period, then stops. */
  close(): Promise<void>;
}

interface AnnounceOptions {
  readonly settings: Settings;
  print(line: string): void;
  readonly heartbeatIntervalMs?: number;
}

async function registered(
  router: RouterClient,
  { facts, endpoint, report, isServing = () => true }: Serving,
  options: AnnounceOptions,
): Promise<Heartbeat> {
  const { name, version } = facts.spec;
  await router.register(facts, endpoint, await report());
  options.print(`6/8 register: ${name} ${version} at ${options.settings.ROUTER_URL} as ${endpoint}`);
  const intervalMs = options.heartbeatIntervalMs ?? heartbeatIntervalMs;
  const beat = async (): Promise<void> => {
    if (!isServing()) return;
    // The spec holds neither tags nor the price of a registration.
    const isAdopted = await router.heartbeat(name, endpoint, await report());
    if (isAdopted) await router.register(facts, endpoint, await report());
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
  const deregister = async (): Promise<{ readonly outcome: string; readonly isStale: boolean }> => {
    if (router === null) return { outcome: '', isStale: false };
    try {
      return { outcome: 'deregistered, ', isStale: await router.deregister(facts.spec.name, endpoint) };
    } catch (error) {
      return { outcome: `deregistration failed, ignored (${describeFault(error)}), `, isStale: false };
    }
  };
  const stop = async (): Promise<void> => {
    heartbeat?.stop();
    const { outcome, isStale } = await deregister();
    await close();
    // Shortly after a restart the router asks the address whether the instance has left.
    if (isStale) await deregister();
    print(`8/8 stop: ${outcome}stopped`);
  };
  let stopping: Promise<void> | undefined;
  return () => {
    stopping ??= stop();
    return stopping;
  };
}

interface Announced {
  /** Step 8; never throws and may be called repeatedly. */
  readonly stop: () => Promise<void>;
  /** Registers a restarted instance again; a failure is printed and ignored. @returns whether it is registered */
  readonly again: () => Promise<boolean>;
}

/** @throws Error when the router refuses the registration */
export async function announce(given: Serving, options: AnnounceOptions): Promise<Announced> {
  const { ROUTER_URL, ROUTER_TOKEN = '', SHARED_WITH } = options.settings;
  const shared_with = readSharedWith(SHARED_WITH) ?? given.facts.shared_with;
  const serving = { ...given, facts: { ...given.facts, shared_with } };
  const router = ROUTER_URL === undefined ? null : createRouterClient(ROUTER_URL, ROUTER_TOKEN);
  const heartbeat = router === null ? null : await registered(router, serving, options);
  if (router === null) {
    options.print('6/8 register: not registered, ROUTER_URL is not set; serving only');
    options.print('7/8 heartbeat: none, not registered');
  }
  const again = async (): Promise<boolean> => {
    const { facts, endpoint, report } = serving;
    try {
      await router?.register(facts, endpoint, await report());
      return true;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      options.print(`registration failed, the next heartbeat is the next chance: ${message}`);
      return false;
    }
  };
  return { stop: createStop(serving, { router, heartbeat }, options), again };
}
