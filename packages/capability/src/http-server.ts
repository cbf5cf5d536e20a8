/**
 * The HTTP interface of an instance: exactly `POST /exec`, `GET /health`, `GET /spec`, every answer JSON. It does not
 * know the router and does not authenticate callers (the router is the boundary).
 *
 * Only the router and programs of the network may ask, so what a browser sends is refused: a visited page reaches the
 * addresses of the visitor's machine. `Origin` and `Sec-Fetch-Site` are never sent by programs; a foreign name in
 * `Host` is one that a page has pointed here; a body of another type than JSON needs no permission to be sent.
 *
 * A request body must be one JSON object. Size is checked while reading, nesting before parsing, so a hostile body
 * costs no more than its bytes; a `__proto__` key is refused.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { writeExactJson } from '@capstan/core/contracts/exact-json';
import { findLostNumbers } from '@capstan/core/json/numbers';
import type { Capability } from './define-capability.ts';
import {
  answerCall,
  type CallHost,
  type CallQueue,
  createCallQueue,
  createCallTeller,
  type ExecReply,
  failure,
  type InstanceCall,
  residentOf,
  toLastLine,
} from './exec-call.ts';
import type { HealthReport } from './lifecycle/registration.ts';

interface Connections {
  readonly isClosing: boolean;
  /** @returns a signal that aborts when the caller closes the connection before the answer, or on `abort` */
  watch(response: ServerResponse): AbortSignal;
  /** Stops listening; closes every connection once no request is in flight. */
  close(): void;
  /** Aborts all requests in flight. */
  abort(reason: Error): void;
}

/**
 * Tracks the requests in flight of an HTTP server, so that it can close as soon as they end. Node treats a connection
 * that has not sent its first request as busy and would wait for it.
 */
function createConnections(server: Server): Connections {
  const open = new Map<ServerResponse, AbortController>();
  let isClosing = false;
  const closeWhenIdle = (): void => {
    if (isClosing && open.size === 0) server.closeAllConnections();
  };
  return {
    get isClosing() {
      return isClosing;
    },
    watch: (response) => {
      const caller = new AbortController();
      open.set(response, caller);
      response.once('close', () => {
        if (!response.writableFinished) caller.abort(new Error('the caller closed the connection'));
        open.delete(response);
        closeWhenIdle();
      });
      return caller.signal;
    },
    close: () => {
      isClosing = true;
      server.close();
      closeWhenIdle();
    },
    abort: (reason) => {
      isClosing = true;
      for (const caller of open.values()) caller.abort(reason);
    },
  };
}

export interface JsonBounds {
  readonly bytes: number;
  /** Maximum nesting of brackets. */
  readonly depth: number;
}

export const defaultBodyLimits: JsonBounds = { bytes: 16 * 1024 * 1024, depth: 64 };

type Body =
  | { readonly ok: true; readonly value: object }
  | { readonly ok: false; readonly status: 413 | 422; readonly error: string };

function refuse(error: string, status: 413 | 422 = 422): Body {
  return { ok: false, status, error };
}

async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer | null> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return null;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > limit) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Maximum nesting of the brackets outside strings. */
function nesting(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i];
    if (inString && char === '\\') i += 1;
    else if (char === '"') inString = !inString;
    else if (inString) continue;
    else if (char === '{' || char === '[') deepest = Math.max(deepest, ++depth);
    else if (char === '}' || char === ']') depth -= 1;
  }
  return deepest;
}

/** A reviver takes several times as long as the parser, and a key is written plainly or with an escape. */
function parse(text: string): unknown {
  if (!text.includes('__proto__') && !text.includes('\\u')) return JSON.parse(text);
  return JSON.parse(text, (key, value) => {
    if (key === '__proto__') throw new Error('the key __proto__ is not allowed');
    return value;
  });
}

/** Reads a request body that must be one JSON object; see the header for its limits. */
async function readJsonBody(request: IncomingMessage, limits: JsonBounds): Promise<Body> {
  const bytes = await readBytes(request, limits.bytes);
  if (bytes === null) return refuse(`the body is larger than the allowed ${limits.bytes} bytes`, 413);
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (nesting(text) > limits.depth) return refuse(`the body nests deeper than the allowed ${limits.depth}`);
    const value = parse(text);
    const [lost] = findLostNumbers(text);
    if (lost !== undefined) return refuse(`${lost.pointer}: ${lost.message}; ${lost.suggestion}`);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ok: true, value };
    return refuse('the body is not a JSON object');
  } catch (error) {
    return refuse(`the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export interface InstanceServer {
  readonly http: Server;
  report(): HealthReport;
  /** Stops listening, answers 503 to new calls, and closes every connection once no request is in flight. */
  close(): void;
  /** Aborts the signal of every open call; their callers get 503. */
  abortCalls(): void;
}

interface ServerParts {
  readonly capability: Capability;
  readonly host: CallHost & {
    readonly bodyLimits: JsonBounds;
    /** Names under which callers know this machine, besides its addresses and localhost. */
    readonly names: readonly string[];
  };
  readonly queue: CallQueue;
  readonly connections: Connections;
}

const methods: Readonly<Record<string, string>> = { '/exec': 'POST', '/health': 'GET', '/spec': 'GET' };

/** Longer than a caller keeps an idle connection, so that no connection is closed while a request is being sent. */
const keepAliveMs = 65_000;

function send(response: ServerResponse, { status, body, headers }: ExecReply, isClosing: boolean): void {
  if (response.destroyed) return;
  if (response.headersSent) return void response.end(toLastLine({ status, body, headers }));
  const text = Buffer.from(writeExactJson(body));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': text.length,
    ...headers,
    ...(isClosing ? { connection: 'close' } : {}),
  });
  response.end(text);
}

const closing = { connection: 'close' } as const; // the body is not read

/** The host of an address, without port and brackets. A request without a host (HTTP/1.0) is of no browser. */
function isOwnHost(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined) return true;
  if (!URL.canParse(`http://${host}`)) return false;
  const name = new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, '');
  return isIP(name) !== 0 || name === 'localhost' || names.includes(name);
}

/** Refuses what only a browser sends, see the header. */
function refuseBrowser({ headers }: IncomingMessage, { host }: ServerParts): ExecReply | null {
  const sent = ['origin', 'sec-fetch-site'].find((name) => headers[name] !== undefined);
  if (sent !== undefined) {
    return {
      ...failure(403, `requests of browsers are refused; this one has the header ${sent}`),
      headers: closing,
    };
  }
  if (isOwnHost(headers.host, host.names)) return null;
  const names = host.names.filter((name) => isIP(name) === 0 && name !== 'localhost');
  const allowed = ['an address', 'localhost', ...names].join(', ');
  const error = `the host ${headers.host} is not allowed; allowed are ${allowed}. ADVERTISE_URL names another one`;
  return { ...failure(403, error), headers: closing };
}

function isJson({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.split(';')[0]?.trim().toLowerCase() === 'application/json';
}

async function answerExec(
  parts: ServerParts,
  request: IncomingMessage,
  { signal, teller }: Pick<InstanceCall, 'signal' | 'teller'>,
): Promise<ExecReply> {
  const { capability, host, queue, connections } = parts;
  if (connections.isClosing) return failure(503, 'the instance is stopping');
  if (!isJson(request)) {
    return { ...failure(415, 'the body needs the header Content-Type: application/json'), headers: closing };
  }
  const body = await readJsonBody(request, host.bodyLimits);
  if (!body.ok) return failure(body.status, body.error);
  const call = { value: body.value, headers: request.headers, signal, teller };
  return answerCall(capability, { ...host, queue, isStopping: () => connections.isClosing }, call);
}

function reportOf({ capability, host, queue }: ServerParts): HealthReport {
  return { queue_depth: queue.depth, ...residentOf(capability, host.log) };
}

function answerHealth(parts: ServerParts): ExecReply {
  const { name, version } = parts.capability.spec;
  const uptime_ms = Math.round(process.uptime() * 1_000);
  return { status: 200, body: { status: 'ok', name, version, uptime_ms, ...reportOf(parts) } };
}

async function answer(
  parts: ServerParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<ExecReply> {
  const signal = parts.connections.watch(response);
  const refusal = refuseBrowser(request, parts);
  if (refusal !== null) return refusal;
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  const method = Object.hasOwn(methods, path) ? methods[path] : undefined;
  if (method === undefined) return failure(404, 'there are POST /exec, GET /health and GET /spec');
  if (request.method !== method) {
    response.setHeader('allow', method);
    return failure(405, `${path} answers ${method} only`);
  }
  if (path === '/exec') {
    return answerExec(parts, request, { signal, teller: createCallTeller(request, response) });
  }
  return path === '/health' ? answerHealth(parts) : { status: 200, body: parts.capability.spec };
}

/** The server is not listening yet. */
export function createInstanceServer(capability: Capability, host: ServerParts['host']): InstanceServer {
  const http = createServer({ keepAliveTimeout: keepAliveMs });
  const queue = createCallQueue(capability.max_concurrency);
  const connections = createConnections(http);
  const parts = { capability, host, queue, connections };
  http.on('request', (request, response) => {
    answer(parts, request, response)
      // After 413 the rest of the body is unread, so the connection cannot serve another request.
      .then((given) => send(response, given, connections.isClosing || given.status === 413))
      // The connection broke while the body was read, or JSON cannot represent the output.
      .catch((error: Error) => send(response, failure(422, error.message), true));
  });
  return {
    http,
    report: () => reportOf(parts),
    close: connections.close,
    abortCalls: () => connections.abort(new Error('the instance is stopping')),
  };
}
