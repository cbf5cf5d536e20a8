/**
 * One request to the other side of a wrapped capability, never repeated: retries belong to Capstan. The status of the
 * answer decides who can help:
 *
 * | answer | the call fails with | then |
 * |---|---|---|
 * | 401, 402, 403, 404, 405 | 502 `provider_config` | another instance; its operator has to act |
 * | 429, 503, 529 | 503 `provider_busy` | later |
 * | 408, 409, 425, other 5xx, no answer | 502 `provider_unavailable` | another instance |
 * | other 4xx | 422 `provider_refused` | the input is at fault |
 *
 * Redirects are not followed, so that no secret reaches another host; only downloads follow them.
 *
 * A message names the origin and the path as the file writes it, never the address itself, which may be a secret.
 */

import { createWriteStream } from 'node:fs';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CallFailure, type CallFailureStatus, isCallFailure } from '@capstan/capability/call-failure';
import { parseExactJson, writeExactJson } from '@capstan/core/contracts/exact-json';
import type { Json } from '@capstan/core/contracts/primitives';
import { publicAddresses } from '@capstan/guarded-dial/address-policy';
import { createDialGuard } from '@capstan/guarded-dial/guarded-dial';
import { Agent, type BodyInit, type Dispatcher, fetch, type Response } from 'undici';
import type { RequestTarget } from './templates.ts';

/** An answer may take as long as the timeout of the call allows. */
const patience = { headersTimeout: 0, bodyTimeout: 0 } as const;
const connectTimeoutMs = 10_000;
const agent = new Agent({ ...patience, connect: { timeout: connectTimeoutMs } });
/** Reaches public addresses alone, by a name or not, and judges each connection. */
const publicAgent = createDialGuard(publicAddresses).createAgent({ ...patience, connectTimeoutMs });

const longestAnswer = 64 * 1024 * 1024;
/** Of an error, of which messages show the beginning. */
const longestError = 64 * 1024;
/** Of a stream of events. */
const longestLine = 1024 * 1024;

export interface Exchange {
  readonly method: string;
  readonly target: RequestTarget;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object or list is sent as JSON. */
  readonly body?: Json | undefined;
  /** Sent as it is, instead of `body`. */
  readonly form?: BodyInit | undefined;
  readonly signal: AbortSignal;
  readonly hide: (text: string) => string;
}

type RemoteFault = 'provider_config' | 'provider_busy' | 'provider_unavailable' | 'provider_refused';

const statuses = {
  provider_config: 502,
  provider_busy: 503,
  provider_unavailable: 502,
  provider_refused: 422,
} as const satisfies Record<RemoteFault, CallFailureStatus>;

export function providerFailure(fault: RemoteFault, message: string, retryAfterS?: number): CallFailure {
  return new CallFailure(statuses[fault], message.slice(0, 1_000), {
    code: fault,
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  });
}

function faultOf(status: number): RemoteFault {
  if (status < 400 || [401, 402, 403, 404, 405].includes(status)) return 'provider_config';
  if ([429, 503, 529].includes(status)) return 'provider_busy';
  return status >= 500 || [408, 409, 425].includes(status) ? 'provider_unavailable' : 'provider_refused';
}

/** Seconds or an HTTP date. */
function readRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = /^\s*\d+(\.\d+)?\s*$/.test(header)
    ? Number(header)
    : (Date.parse(header) - Date.now()) / 1_000;
  return seconds >= 0 ? seconds : undefined;
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

function bodyOf({ body, form, headers = {} }: Exchange): {
  body?: BodyInit;
  headers: Record<string, string>;
} {
  if (form !== undefined) return { body: form, headers };
  if (body === undefined || body === null) return { headers };
  const type = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  const text = typeof body === 'string' ? body : writeExactJson(body);
  const guessed = typeof body === 'string' ? 'text/plain' : 'application/json';
  return { body: text, headers: type ? headers : { ...headers, 'content-type': guessed } };
}

/** @throws CallFailure unless the answer is 2xx */
export async function openExchange(exchange: Exchange): Promise<Response> {
  const { method, target, signal, hide } = exchange;
  const place = `${method} ${target.shown}`;
  let response: Response;
  try {
    response = await fetch(target.url, {
      method,
      ...bodyOf(exchange),
      signal,
      redirect: 'manual',
      dispatcher: agent,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw providerFailure('provider_unavailable', hide(`${place} was not answered: ${causeOf(error)}`));
  }
  if (response.ok) return response;
  const text = hide(await readBeginning(response))
    .slice(0, 600)
    .trim();
  const fault = faultOf(response.status);
  const retryAfter =
    fault === 'provider_busy' ? readRetryAfter(response.headers.get('retry-after')) : undefined;
  throw providerFailure(fault, hide(`${place} was answered ${response.status}: ${text}`), retryAfter);
}

/** The beginning of an error. The rest is not read; one that breaks off is shown as far as it came. */
async function readBeginning({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body ?? []) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= longestError) break;
    }
  } catch {
    // The status is the only known fact.
  }
  return Buffer.concat(chunks).subarray(0, longestError).toString('utf8');
}

type AnswerReading = Pick<Exchange, 'signal' | 'hide'>;

function tooLarge(what: string, limit: number): CallFailure {
  return providerFailure('provider_refused', `${what} is larger than the allowed ${limit} bytes`);
}

/** The chunks of an answer. @throws CallFailure when they break off or are too many */
async function* readChunks({ body }: Response, { signal, hide }: AnswerReading): AsyncGenerator<Uint8Array> {
  let size = 0;
  try {
    for await (const chunk of body ?? []) {
      size += chunk.length;
      if (size > longestAnswer) break;
      yield chunk;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw providerFailure('provider_unavailable', hide(`the answer broke off: ${causeOf(error)}`));
  }
  if (size > longestAnswer) throw tooLarge('the answer', longestAnswer);
}

/** The bytes of an answer. @throws CallFailure when they break off or are too many */
export async function readBytes(response: Response, reading: AnswerReading): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of readChunks(response, reading)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The lines of an answer as they come. @throws CallFailure when one is too long, or when they break off or are too many */
export async function* readLines(response: Response, reading: AnswerReading): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  // Joined when the line ends, so that a line in many pieces takes no longer than one in few.
  let pieces: string[] = [];
  let length = 0;
  for await (const chunk of readChunks(response, reading)) {
    const [first = '', ...rest] = decoder.decode(chunk, { stream: true }).split('\n');
    pieces.push(first);
    length += first.length;
    for (const next of rest) {
      yield pieces.join('');
      pieces = [next];
      length = next.length;
    }
    if (length > longestLine) throw tooLarge('a line of the answer', longestLine);
  }
  if (length > 0) yield pieces.join('');
}

/** @throws CallFailure unless the answer is 2xx and JSON; an empty answer is null */
export async function askJson(exchange: Exchange): Promise<Json> {
  const text = (await readBytes(await openExchange(exchange), exchange)).toString('utf8');
  if (text.trim() === '') return null;
  try {
    return parseExactJson(text) as Json;
  } catch {
    const { method, target, hide } = exchange;
    const seen = hide(text.slice(0, longestError)).slice(0, 100);
    const message = `${method} ${target.shown} was answered with ${seen}, not with JSON`;
    throw providerFailure('provider_unavailable', hide(message));
  }
}

/** Writes the body of an answer into a file. @throws CallFailure when it breaks off or is larger than allowed */
export async function saveBody(
  { body }: Response,
  path: string,
  { signal, maxBytes }: { readonly signal: AbortSignal; readonly maxBytes: number },
): Promise<void> {
  const source = body === null ? Readable.from([]) : Readable.fromWeb(body);
  let size = 0;
  const count = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      size += chunk.length;
      done(size > maxBytes ? tooLarge('the file of the answer', maxBytes) : null, chunk);
    },
  });
  try {
    await pipeline(source, count, createWriteStream(path), { signal });
  } catch (error) {
    signal.throwIfAborted();
    if (isCallFailure(error)) throw error;
    throw providerFailure('provider_unavailable', `the file of the answer broke off: ${causeOf(error)}`);
  }
}

export interface Origin {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Where files of an answer may come from. */
export interface FileSources {
  /** Of the service: reached wherever it is, with its headers. */
  readonly origin: Origin | undefined;
  /** Further origins that are reached wherever they are. All others have public addresses. */
  readonly origins: readonly string[];
  readonly maxBytes: number;
}

const mostRedirects = 5;

/** How one address on the way to a file is asked. */
interface FileRoute {
  readonly headers: Readonly<Record<string, string>>;
  readonly dispatcher: Dispatcher;
}

function routeTo({ origin }: URL, sources: FileSources): FileRoute | null {
  const own = sources.origin;
  if (own !== undefined && origin === new URL(own.url).origin) {
    return { headers: own.headers, dispatcher: agent };
  }
  const isListed = sources.origins.some((listed) => new URL(listed).origin === origin);
  return isListed ? { headers: {}, dispatcher: agent } : null;
}

/**
 * Follows redirects, each of which is judged by itself. An address that an outsider names is public: once a redirect has
 * left the origins that are known, none leads back to them.
 */
async function followFile(first: URL, sources: FileSources, signal: AbortSignal): Promise<Response> {
  let url = first;
  let isOutside = false;
  for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
    if (!/^https?:$/.test(url.protocol)) throw new Error(`${url.protocol} is neither http: nor https:`);
    if (url.username !== '' || url.password !== '') throw refuseCredentials(url);
    const way: FileRoute | null = isOutside ? null : routeTo(url, sources);
    isOutside = way === null;
    const { headers, dispatcher } = way ?? { headers: {}, dispatcher: publicAgent };
    const response = await fetch(url, { headers: { ...headers }, signal, redirect: 'manual', dispatcher });
    const location = response.headers.get('location');
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    await response.body?.cancel();
    url = new URL(location, url);
  }
  throw new Error(`it has more than ${mostRedirects} redirects`);
}

function refuseCredentials({ host }: URL): Error {
  const message = `the file of the answer at ${host} has a user or password in its address, which is not allowed`;
  return providerFailure('provider_refused', message);
}

function isRefusedAddress(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.name === 'AddressRefused';
}

/** Copies a file of an answer. @returns its content type, if stated */
export async function downloadFile(
  address: string,
  path: string,
  { signal, ...sources }: FileSources & { readonly signal: AbortSignal },
): Promise<string | undefined> {
  if (!URL.canParse(address))
    throw providerFailure('provider_refused', 'the answer names a file by an invalid address');
  const url = new URL(address);
  try {
    const response = await followFile(url, sources, signal);
    if (!response.ok) throw new Error(`it was answered ${response.status}`);
    await saveBody(response, path, { signal, maxBytes: sources.maxBytes });
    return response.headers.get('content-type')?.split(';')[0]?.trim();
  } catch (error) {
    signal.throwIfAborted();
    if (isCallFailure(error)) throw error;
    // Another instance would get the same address, and a caller may have named it.
    const fault = isRefusedAddress(error) ? 'provider_refused' : 'provider_unavailable';
    throw providerFailure(fault, `the file of the answer at ${url.host} cannot be read: ${causeOf(error)}`);
  }
}

/** @throws CallFailure when an address out of an answer would send the headers to another host */
export function requireOrigin(target: RequestTarget, own: string): RequestTarget {
  const [seen, allowed] = [new URL(target.url).origin, new URL(own).origin];
  if (seen === allowed) return target;
  throw providerFailure(
    'provider_config',
    `the answer names an address of ${seen}; allowed is ${allowed}, which has the secrets`,
  );
}
