/**
 * The client of the API for programs in TypeScript, imported as `@capstan/client`. Every route of the OpenAPI document is
 * a typed request: `capstan.GET('/v1/runs/{id}', { params: { path: { id } } })`. A refused request throws.
 */
import createFetchClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './api-types.d.ts';

export type { components, operations, paths } from './api-types.d.ts';

/** Types of the API by name: `Schemas['Run']`. */
export type Schemas = components['schemas'];

export interface CapstanOptions {
  /** Address of the server, such as `http://127.0.0.1:7400`. */
  readonly url: string;
  readonly key: string;
  /** One of the key's projects; default: its first. */
  readonly project?: string;
  /** Instead of the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/** A refusal of the API: `application/problem+json`, or the answer of something between. */
export class CapstanError extends Error {
  override readonly name = 'CapstanError';
  readonly status: number;
  /** One of the documented codes, or `http_STATUS` for an answer that is no problem of the API. */
  readonly code: string;
  /** The findings of a refused request, each with a JSON Pointer. */
  readonly errors: NonNullable<Schemas['Problem']['errors']>;
  readonly requestId: string | undefined;

  constructor(status: number, problem: Partial<Schemas['Problem']>) {
    super(problem.detail ?? problem.title ?? `the server answered ${status}`);
    this.status = status;
    this.code = problem.code ?? `http_${status}`;
    this.errors = problem.errors ?? [];
    this.requestId = problem.request_id;
  }
}

interface WaitOptions {
  /** Ends the waiting; the run continues. */
  readonly signal?: AbortSignal;
}

export interface Capstan extends Client<paths> {
  /** Starts a run. @throws CapstanError */
  start(request: Schemas['RunRequest'], idempotencyKey?: string): Promise<Schemas['Run']>;
  /** Waits until a run has ended, whatever its end is. @throws CapstanError */
  wait(runId: string, options?: WaitOptions): Promise<Schemas['Run']>;
  /** Calls a capability directly, by the router and within budgets. @throws CapstanError */
  exec(capability: string, request: Schemas['ExecRequest']): Promise<Schemas['ExecAnswer']>;
}

const ended: ReadonlySet<string> = new Set(['succeeded', 'failed', 'cancelled']);

/** The pauses between two looks at a run, in milliseconds. */
const patience = { first: 100, factor: 1.5, most: 2_000 };

export function createCapstan({ url, key, project, fetch }: CapstanOptions): Capstan {
  const client = createFetchClient<paths>({
    baseUrl: url,
    headers: {
      authorization: `Bearer ${key}`,
      ...(project === undefined ? {} : { 'x-project-id': project }),
    },
    ...(fetch === undefined ? {} : { fetch }),
  });
  client.use({ onResponse: ({ response }) => (response.ok ? undefined : refuse(response)) });
  return {
    ...client,
    start: async (body, idempotencyKey) => {
      const header = idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
      return need(await client.POST('/v1/runs', { body, params: { header } }));
    },
    wait: async (id, { signal } = {}) => {
      for (let pauseMs = patience.first; ; pauseMs = Math.min(pauseMs * patience.factor, patience.most)) {
        const run = need(
          await client.GET('/v1/runs/{id}', { params: { path: { id } }, ...(signal && { signal }) }),
        );
        if (ended.has(run.state)) return run;
        await pause(pauseMs, signal);
      }
    },
    exec: async (name, body) =>
      need(await client.POST('/v1/capabilities/{name}/exec', { body, params: { path: { name } } })),
  };
}

async function refuse(response: Response): Promise<never> {
  const text = await response.text();
  let problem: Partial<Schemas['Problem']>;
  try {
    problem = JSON.parse(text);
  } catch {
    problem = { detail: text.slice(0, 200) };
  }
  throw new CapstanError(response.status, problem);
}

/** Refusals have been thrown, so there is an answer. */
function need<Data>({ data }: { readonly data?: Data }): Data {
  return data as Data;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
