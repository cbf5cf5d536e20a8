/** A real HTTP server that plays an instance, well or badly. */
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CapabilitySpec, Registration } from '@capstan/core/contracts/capability';

export function aSpec(changes: Partial<CapabilitySpec> = {}): CapabilitySpec {
  return {
    name: 'concat',
    version: '1.0.0',
    description: 'Joins clips',
    input: { type: 'object', properties: { clips: { type: 'array' } }, required: ['clips'] },
    output: { type: 'object', properties: { output_path: { type: 'string' } }, required: ['output_path'] },
    cost_model: { type: 'free', rate_usd: 0 },
    ...changes,
  };
}

export function answerJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

export interface FakeInstance {
  readonly url: string;
  /** Requests so far, as `GET /health`. */
  readonly requests: readonly string[];
  /** Replaces the answer to a path; null restores it. */
  answer(path: '/health' | '/spec' | '/exec', listener: RequestListener | null): void;
  registration(changes?: Partial<Registration>): Registration;
  /** Stops listening; connections are refused. */
  die(): Promise<void>;
  /** Listens on the same port again. */
  rise(): Promise<void>;
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', () => resolve());
  });
}

export async function startFakeInstance(spec: CapabilitySpec = aSpec()): Promise<FakeInstance> {
  const { name, version } = spec;
  const requests: string[] = [];
  const listeners: Record<string, RequestListener | null> = {};
  const defaults: Record<string, unknown> = {
    '/health': { status: 'ok', name, version, uptime_ms: 1_000 },
    '/spec': spec,
  };
  const handle: RequestListener = (request, response) => {
    const path = request.url ?? '';
    requests.push(`${request.method} ${path}`);
    const listener = listeners[path];
    if (listener) listener(request, response);
    else answerJson(response, defaults[path] ?? {}, path in defaults ? 200 : 404);
  };
  let server = createServer(handle);
  await listen(server, 0);
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    requests,
    answer: (path, listener) => {
      listeners[path] = listener;
    },
    registration: (changes = {}) => ({
      name,
      version,
      endpoint: url,
      spec_url: `${url}/spec`,
      health_url: `${url}/health`,
      cost_model: { type: 'free', rate_usd: 0 },
      tags: ['local'],
      max_concurrency: 1,
      settle: 'computed',
      ...changes,
    }),
    die: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
    rise: async () => {
      server = createServer(handle);
      await listen(server, port);
    },
  };
}
