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
 * Redirects are not followed, so that no secret reaches another host; only downloads follow them, without headers.
 */

import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Agent, type BodyInit, fetch, type Response } from 'undici';
import { CallFailure, type CallFailureStatus, isCallFailure } from '../capability/call-failure.ts';
import { parseExactJson, writeExactJson } from '../contracts/exact-json.ts';
import type { Json } from '../contracts/primitives.ts';

/** An answer may take as long as the timeout of the call allows. */
const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } });

const longestAnswer = 64 * 1024 * 1024;

export interface Exchange {
  readonly method: string;
  readonly url: string;
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
  const { method, url, signal, hide } = exchange;
  const place = `${method} ${new URL(url).origin}${new URL(url).pathname}`;
  let response: Response;
  try {
    response = await fetch(url, {
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
  const text = (await response.text().catch(() => '')).slice(0, 600).trim();
  const fault = faultOf(response.status);
  const retryAfter =
    fault === 'provider_busy' ? readRetryAfter(response.headers.get('retry-after')) : undefined;
  throw providerFailure(fault, hide(`${place} was answered ${response.status}: ${text}`), retryAfter);
}

/** The bytes of an answer. @throws CallFailure when they break off or are too many */
export async function readBytes(
  response: Response,
  { signal, hide }: Pick<Exchange, 'signal' | 'hide'>,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > longestAnswer) break;
      chunks.push(chunk);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw providerFailure('provider_unavailable', hide(`the answer broke off: ${causeOf(error)}`));
  }
  if (size <= longestAnswer) return Buffer.concat(chunks);
  throw providerFailure('provider_refused', `the answer is larger than the allowed ${longestAnswer} bytes`);
}

/** @throws CallFailure unless the answer is 2xx and JSON; an empty answer is null */
export async function askJson(exchange: Exchange): Promise<Json> {
  const text = (await readBytes(await openExchange(exchange), exchange)).toString('utf8');
  if (text.trim() === '') return null;
  try {
    return parseExactJson(text) as Json;
  } catch {
    const message = `${exchange.method} ${new URL(exchange.url).pathname} was answered with ${text.slice(0, 100)}, not with JSON`;
    throw providerFailure('provider_unavailable', exchange.hide(message));
  }
}

/** Writes the body of an answer into a file, whatever its size. */
export async function saveBody({ body }: Response, path: string, signal: AbortSignal): Promise<void> {
  const source = body === null ? Readable.from([]) : Readable.fromWeb(body);
  try {
    await pipeline(source, createWriteStream(path), { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw providerFailure('provider_unavailable', `the file of the answer broke off: ${causeOf(error)}`);
  }
}

interface Origin {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Copies a file of an answer. Headers go to the origin alone. @returns its content type, if stated */
export async function downloadFile(
  url: string,
  path: string,
  { origin, signal }: { readonly origin: Origin | undefined; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const isOwn = origin !== undefined && new URL(url).origin === new URL(origin.url).origin;
  const headers = isOwn ? { ...origin.headers } : {};
  const redirect = isOwn ? 'manual' : 'follow';
  try {
    let response = await fetch(url, { headers, signal, redirect, dispatcher: agent });
    const location = response.headers.get('location');
    if (isOwn && response.status >= 300 && response.status < 400 && location !== null) {
      response = await fetch(new URL(location, url), { signal, dispatcher: agent });
    }
    if (!response.ok) throw new Error(`it was answered ${response.status}`);
    await saveBody(response, path, signal);
    return response.headers.get('content-type')?.split(';')[0]?.trim();
  } catch (error) {
    signal.throwIfAborted();
    if (isCallFailure(error)) throw error;
    const { host } = new URL(url);
    throw providerFailure(
      'provider_unavailable',
      `the file of the answer at ${host} cannot be read: ${causeOf(error)}`,
    );
  }
}

/** @throws CallFailure when an address out of an answer would send the headers to another host */
export function requireOrigin(url: string, own: string): string {
  const [seen, allowed] = [new URL(url).origin, new URL(own).origin];
  if (seen === allowed) return url;
  throw providerFailure(
    'provider_config',
    `the answer names an address of ${seen}; allowed is ${allowed}, which has the secrets`,
  );
}
