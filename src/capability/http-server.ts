/**
 * The HTTP face of an instance: exactly `POST /exec`, `GET /health`, `GET /spec`, every answer JSON. It knows
 * nothing of the router and authenticates nobody (the router is the boundary).
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type CallQueue, createCallQueue } from './call-queue.ts';
import { type Connections, createConnections } from './connections.ts';
import type { Capability } from './define-capability.ts';
import { answerCall, type CallHost, type ExecReply, failure, type InstanceCall } from './exec-call.ts';
import { type JsonBounds, readJsonBody } from './json-body.ts';
import { createProgressWriter, toLastLine } from './progress-writer.ts';

export interface InstanceServer {
  readonly http: Server;
  /** Calls in work or waiting. */
  queueDepth(): number;
  /** Stops listening, answers 503 to new calls, and closes every connection once nothing is being answered. */
  close(): void;
  /** Aborts the signal of every open call; their callers get 503. */
  abortCalls(): void;
}

interface Parts {
  readonly capability: Capability;
  readonly host: CallHost & { readonly bodyLimits: JsonBounds };
  readonly queue: CallQueue;
  readonly connections: Connections;
}

const methods: Readonly<Record<string, string>> = { '/exec': 'POST', '/health': 'GET', '/spec': 'GET' };

/** Longer than a caller keeps an idle connection, so that it is never closed under a request on its way. */
const keepAliveMs = 65_000;

function send(response: ServerResponse, { status, body, headers }: ExecReply, isClosing: boolean): void {
  if (response.destroyed) return;
  if (response.headersSent) return void response.end(toLastLine({ status, body, headers }));
  const text = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': text.length,
    ...headers,
    ...(isClosing ? { connection: 'close' } : {}),
  });
  response.end(text);
}

async function answerExec(
  parts: Parts,
  request: IncomingMessage,
  { signal, progress }: Pick<InstanceCall, 'signal' | 'progress'>,
): Promise<ExecReply> {
  const { capability, host, queue, connections } = parts;
  if (connections.isClosing) return failure(503, 'the instance is stopping');
  const body = await readJsonBody(request, host.bodyLimits);
  if (!body.ok) return failure(body.status, body.error);
  const call = { value: body.value, headers: request.headers, signal, progress };
  return answerCall(capability, { ...host, queue, isStopping: () => connections.isClosing }, call);
}

function answerHealth({ capability, queue }: Parts): ExecReply {
  const { name, version } = capability.spec;
  const uptime_ms = Math.round(process.uptime() * 1_000);
  return { status: 200, body: { status: 'ok', name, version, uptime_ms, queue_depth: queue.depth } };
}

async function answer(parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<ExecReply> {
  const signal = parts.connections.watch(response);
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  const method = Object.hasOwn(methods, path) ? methods[path] : undefined;
  if (method === undefined) return failure(404, 'there are POST /exec, GET /health and GET /spec');
  if (request.method !== method) {
    response.setHeader('allow', method);
    return failure(405, `${path} answers ${method} only`);
  }
  if (path === '/exec') {
    const progress = createProgressWriter(request, response);
    return answerExec(parts, request, { signal, progress });
  }
  return path === '/health' ? answerHealth(parts) : { status: 200, body: parts.capability.spec };
}

/** Not listening yet. */
export function createInstanceServer(capability: Capability, host: Parts['host']): InstanceServer {
  const http = createServer({ keepAliveTimeout: keepAliveMs });
  const queue = createCallQueue(capability.max_concurrency);
  const connections = createConnections(http);
  const parts = { capability, host, queue, connections };
  http.on('request', (request, response) => {
    answer(parts, request, response)
      // After 413 the rest of the body is unread, so the connection cannot serve another request.
      .then((given) => send(response, given, connections.isClosing || given.status === 413))
      // A connection that broke while the body was read, or an output that JSON cannot hold.
      .catch((error: Error) => send(response, failure(422, error.message), true));
  });
  return {
    http,
    queueDepth: () => queue.depth,
    close: connections.close,
    abortCalls: () => connections.abort(new Error('the instance is stopping')),
  };
}
