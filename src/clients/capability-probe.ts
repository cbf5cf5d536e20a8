/**
 * Reads `/health` and `/spec` of an instance: a new connection each time (an open one proves nothing), bounded in
 * time and size, JSON only, redirects are failures. Never throws for what an instance does.
 */

import type { Socket } from 'node:net';
import { CapabilitySpec, Health } from '@capstan/core/contracts/capability';
import { wording } from '@capstan/core/json/issue-words';
import { toPlainAddress } from '@capstan/guarded-dial/address-policy';
import { AddressRefused, type DialGuard } from '@capstan/guarded-dial/guarded-dial';
import { LRUCache } from 'lru-cache';
import type { Dispatcher } from 'undici';
import type { z } from 'zod';

export type ProbeFault =
  /** Nothing listens there, or it hung up. */
  | { readonly kind: 'refused'; readonly detail: string }
  /** `connected` false: not even the TCP connect was answered, or the way there is broken. */
  | { readonly kind: 'timeout'; readonly connected: boolean; readonly detail: string }
  /** It answers that it cannot work now: 5xx or 429. */
  | { readonly kind: 'unhealthy'; readonly detail: string }
  /** It answers something else than what was asked for. */
  | { readonly kind: 'unusable'; readonly detail: string };

const refused = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EPIPE', 'UND_ERR_SOCKET']);
const unconnected = new Set([
  'EADDRNOTAVAIL',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EMFILE',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const unanswered = new Set(['UND_ERR_BODY_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT']);

/** Explains the meaning of a failed connection for an instance. */
function explainProbeError(error: unknown): ProbeFault {
  if (error instanceof AddressRefused) return { kind: 'unusable', detail: error.message };
  const { code = 'unknown fault' } = error as { code?: string };
  if (refused.has(code)) return { kind: 'refused', detail: `connection refused or broken (${code})` };
  if (unconnected.has(code)) return { kind: 'timeout', connected: false, detail: `no connection (${code})` };
  if (unanswered.has(code))
    return { kind: 'timeout', connected: true, detail: `no complete answer (${code})` };
  return { kind: 'unusable', detail: `not HTTP as expected (${code})` };
}

type ProbeResult<Value> = { readonly kind: 'ok'; readonly value: Value } | ProbeFault;

/** Where a connection leads, however the address was written: all addresses of loopback are one. */
function peerOf({
  remoteAddress = '',
  remotePort = 0,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  const text = toPlainAddress(remoteAddress)?.text ?? remoteAddress;
  const isLoopback = text.startsWith('127.') || text === '::1';
  return `${isLoopback ? 'loopback' : text}:${remotePort}`;
}

export interface CapabilityProbe {
  /** @throws the reason of `signal` when it aborts */
  readHealth(url: string, signal?: AbortSignal): Promise<ProbeResult<Health>>;
  /** @throws the reason of `signal` when it aborts */
  readSpec(url: string, signal?: AbortSignal): Promise<ProbeResult<CapabilitySpec>>;
  /** Where the last connection to the origin of this URL led; null: none has been made lately. */
  peerOf(url: string): string | null;
  close(): Promise<void>;
}

const connectTimeoutMs = 3_000;
const healthLimit = 16 * 1_024;
const specLimit = 64 * 1_024;
/** Schemas nest up to 32 levels, inside the spec object. */
const maxDepth = 40;

interface CapabilityProbeOptions {
  readonly guard: DialGuard;
  /** From the connect to the last byte of the answer. */
  readonly deadlineMs: number;
}

export function createCapabilityProbe({ guard, deadlineMs }: CapabilityProbeOptions): CapabilityProbe {
  const peers = new LRUCache<string, string>({ max: 1_000 });
  const agent = guard.createAgent({
    onConnection: (socket, { origin }) => peers.set(origin, peerOf(socket)),
    pipelining: 0,
    connectTimeoutMs,
    headersTimeout: deadlineMs,
    bodyTimeout: deadlineMs,
  });
  const health = { schema: Health, limitBytes: healthLimit, deadlineMs };
  const spec = { schema: CapabilitySpec, limitBytes: specLimit, deadlineMs };
  return {
    readHealth: (url, signal) => read(agent, { ...health, url, signal }),
    readSpec: (url, signal) => read(agent, { ...spec, url, signal }),
    peerOf: (url) => peers.get(new URL(url).origin) ?? null,
    close: () => agent.destroy(),
  };
}

interface ProbeRequest<Value> {
  readonly url: string;
  readonly schema: z.ZodType<Value>;
  readonly limitBytes: number;
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
}

async function read<Value>(
  agent: Dispatcher,
  { url, schema, limitBytes, deadlineMs, signal }: ProbeRequest<Value>,
): Promise<ProbeResult<Value>> {
  signal?.throwIfAborted();
  // Not AbortSignal.any: with a signal that lives as long as the process it keeps every probe in memory.
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  const timer = setTimeout(() => abort.abort(isLate), deadlineMs);
  signal?.addEventListener('abort', stop, { once: true });
  const { origin, pathname } = new URL(url);
  try {
    const answer = await agent.request({
      origin,
      path: pathname,
      method: 'GET',
      headers: { accept: 'application/json' },
      signal: abort.signal,
    });
    const body = await readJsonBody(answer, limitBytes);
    return typeof body === 'string' ? parse(body, schema) : body;
  } catch (error) {
    signal?.throwIfAborted();
    return abort.signal.reason === isLate
      ? { kind: 'timeout', connected: true, detail: `no complete answer within ${deadlineMs / 1_000} s` }
      : explainProbeError(error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

const isLate = 'late';

function unusable(detail: string): ProbeFault {
  return { kind: 'unusable', detail };
}

/** The body's text where status and content type are right. */
async function readJsonBody(
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  limitBytes: number,
): Promise<string | ProbeFault> {
  const contentType = String(headers['content-type'] ?? 'none');
  const fault = findFault(status, contentType);
  if (fault !== null) {
    body.on('error', () => undefined).destroy(); // undici reports its own abort as an error event
    return fault;
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limitBytes) return unusable(`more than ${limitBytes} bytes, the most allowed`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString('utf8');
}

function findFault(status: number, contentType: string): ProbeFault | null {
  if (status === 429 || status >= 500) return { kind: 'unhealthy', detail: `HTTP ${status}` };
  if (status >= 300 && status < 400)
    return unusable(`HTTP ${status}, a redirect; an instance answers itself`);
  if (status !== 200) return unusable(`HTTP ${status}, not 200`);
  return /^application\/([\w.+-]+\+)?json\b/i.test(contentType)
    ? null
    : unusable(`content type ${JSON.stringify(contentType.slice(0, 100))}, not application/json`);
}

function parse<Value>(text: string, schema: z.ZodType<Value>): ProbeResult<Value> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return unusable('not JSON, though its content type says so');
  }
  if (isDeep(value, maxDepth)) return unusable(`nested deeper than ${maxDepth} levels`);
  const parsed = schema.safeParse(value, wording);
  if (parsed.success) return { kind: 'ok', value: parsed.data };
  const issues = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`);
  return unusable(issues.slice(0, 5).join('; '));
}

function isDeep(value: unknown, levels: number): boolean {
  return (
    value !== null &&
    typeof value === 'object' &&
    (levels === 0 || Object.values(value).some((child) => isDeep(child, levels - 1)))
  );
}
