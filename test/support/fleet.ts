/** Instances made for tests: real HTTP servers with scripted answers that record every `/exec`. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SharedWith } from '@capstan/core/contracts/capability';
import { choosePort } from '../../src/dev/ports.ts';
import type { Capstan } from './capstan.ts';

export interface Exec {
  readonly input: Record<string, unknown>;
  /** The body as it came. */
  readonly text: string;
  readonly headers: IncomingMessage['headers'];
  /** The caller disconnected before the answer. */
  closed: boolean;
  answered: boolean;
}

export type Handler = (exec: Exec, response: ServerResponse) => void | Promise<void>;

export interface Instance {
  readonly endpoint: string;
  readonly execs: Exec[];
  /** Sets its answers to the next calls. */
  handle: Handler;
  /** More fields of the answers of `/health`. */
  health: object;
  stop(): Promise<void>;
}

export interface InstanceOptions {
  readonly name: string;
  readonly version?: string;
  readonly cost_model?: {
    type: string;
    rate_usd: number;
    worst_case?: string;
    expected?: string;
    start?: string;
    per_token?: string;
  };
  readonly settle?: 'reported';
  readonly tags?: readonly string[];
  readonly max_concurrency?: number;
  readonly input?: object;
  readonly output?: object;
  readonly deterministic?: boolean;
  readonly protocols?: readonly string[];
  readonly stops?: boolean;
  readonly async?: { readonly slot: 'held' | 'freed' };
  readonly description?: string;
  readonly warm_up?: { readonly input: object };
  readonly shared_with?: SharedWith;
  readonly affinity?: string;
  readonly max_resident?: number;
  readonly resident?: readonly string[];
  /** Its answers to the first calls, of which one may come before it is known here. Default: their input. */
  readonly handle?: Handler;
}

export function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** Returns its input. */
export const echo: Handler = (exec, response) => answer(response, 200, { ok: true, output: exec.input });

/** A body whose text is given. */
export function answerText(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(text);
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** Starts an instance and registers it with the router. */
export async function startInstance(
  capstan: Pick<Capstan, 'request'>,
  options: InstanceOptions,
): Promise<Instance> {
  const { name, version = '1.0.0', cost_model = { type: 'free', rate_usd: 0 }, tags = ['local'] } = options;
  const spec = {
    name,
    version,
    description: options.description ?? `${name} for tests`,
    input: options.input ?? { type: 'object' },
    output: options.output ?? { type: 'object' },
    cost_model,
    ...(options.deterministic === undefined ? {} : { deterministic: options.deterministic }),
    ...(options.protocols === undefined ? {} : { protocols: options.protocols }),
    ...(options.stops === undefined ? {} : { stops: options.stops }),
    ...(options.async === undefined ? {} : { async: options.async }),
    ...(options.affinity === undefined ? {} : { affinity: options.affinity }),
  };
  const instance: Instance = {
    endpoint: '',
    execs: [],
    handle: options.handle ?? echo,
    health: {},
    stop: () => closeServer(server),
  };
  const server = createServer(async (request, response) => {
    if (request.url === '/health') {
      const uptime_ms = process.uptime() * 1_000;
      return answer(response, 200, { status: 'ok', name, version, uptime_ms, ...instance.health });
    }
    if (request.url === '/spec') return answer(response, 200, spec);
    if (request.method !== 'POST') return answer(response, 404, { ok: false, error: 'nothing is here' });
    const text = await readText(request);
    const exec: Exec = {
      input: JSON.parse(text),
      text,
      headers: request.headers,
      closed: false,
      answered: false,
    };
    instance.execs.push(exec);
    response.once('close', () => {
      exec.closed = !response.writableFinished;
      exec.answered = response.writableFinished;
    });
    await instance.handle(exec, response);
  });
  // None that the system gives away: a Capstan looks for an instance that is gone, at a port that others would have.
  await once(server.listen(await choosePort([]), '127.0.0.1'), 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  Object.assign(instance, { endpoint });
  const { status, body } = await capstan.request('POST', '/v1/capabilities', {
    name,
    version,
    endpoint,
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_model,
    tags,
    max_concurrency: options.max_concurrency ?? 16,
    settle: options.settle,
    warm_up: options.warm_up,
    shared_with: options.shared_with,
    max_resident: options.max_resident,
    resident: options.resident,
  });
  if (status >= 300) throw new Error(`registration: ${status} ${JSON.stringify(body)}`);
  return instance;
}
