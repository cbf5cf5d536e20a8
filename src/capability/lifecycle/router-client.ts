/** What an instance says to the router. Nothing is retried: the next heartbeat is the next chance. */
import type { Capability } from '../define-capability.ts';

export type Registrable = Pick<Capability, 'spec' | 'cost_model' | 'tags' | 'max_concurrency' | 'settle'>;

export interface RouterClient {
  /** @throws Error unless the router answered 2xx; so do the others */
  register(facts: Registrable, endpoint: string, queueDepth: number | undefined): Promise<void>;
  heartbeat(name: string, endpoint: string, queueDepth: number | undefined): Promise<void>;
  deregister(name: string, endpoint: string): Promise<void>;
}

const timeoutMs = { register: 30_000, heartbeat: 10_000, deregister: 5_000 };

/** The reason as problem+json gives it, else the start of the text. */
function reasonOf(text: string): string {
  try {
    const problem: unknown = JSON.parse(text);
    const detail = typeof problem === 'object' ? Reflect.get(problem ?? {}, 'detail') : undefined;
    if (typeof detail === 'string') return detail;
  } catch {
    // Not JSON: the text itself is the reason.
  }
  return text.slice(0, 200);
}

/** With the cause, which says of a failed fetch what happened. */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

export function createRouterClient(routerUrl: string, token: string): RouterClient {
  const base = `${routerUrl.replace(/(?<!\/)\/+$/, '')}/v1/capabilities`;

  const call = async (method: string, url: string, body: object, limitMs: number): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(limitMs);
    const request = { method, headers, body: JSON.stringify(body), redirect: 'error', signal } as const;
    const response = await fetch(url, request).catch((error: unknown) => {
      throw new Error(`${method} ${url}: ${describeFault(error)}`, { cause: error });
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${url} was answered ${response.status}: ${reasonOf(text)}`);
  };

  return {
    register: ({ spec, cost_model, tags, max_concurrency, settle }, endpoint, queue_depth) => {
      const { name, version } = spec;
      const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
      const body = { name, version, ...urls, cost_model, tags, max_concurrency, queue_depth };
      const sent = settle === 'reported' ? { ...body, settle } : body;
      return call('POST', base, sent, timeoutMs.register);
    },
    heartbeat: (name, endpoint, queue_depth) =>
      call('POST', `${base}/${name}/heartbeat`, { endpoint, queue_depth }, timeoutMs.heartbeat),
    deregister: (name, endpoint) => call('DELETE', `${base}/${name}`, { endpoint }, timeoutMs.deregister),
  };
}
