/**
 * One request to the other side of a wrapped capability, never repeated: retries belong to Capstan. Its failures are
 * those of provider-failure.ts. The exchange follows no redirects, so that no secret reaches another host; only
 * downloads follow them (download.ts).
 *
 * A message names the origin and the path as the file writes it, never the address itself, which may be a secret.
 */
import { createWriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { type CallFailure, isCallFailure } from '@capstan/capability/call-failure';
import type { FailureReport } from '@capstan/core/contracts/capability';
import { parseExactJson, writeExactJson } from '@capstan/core/contracts/exact-json';
import type { Json } from '@capstan/core/contracts/primitives';
import { type FormData, request } from 'undici';
import type { RequestTarget } from '../templates.ts';
import { serviceAgent } from './connections.ts';
import { causeOf, failureOfAnswer, isUnconnected, providerFailure } from './provider-failure.ts';
import { createWorkLimit, type WorkLimit } from './work-limit.ts';

export const longestAnswer = 64 * 1024 * 1024;
/** Of an error, of which messages show the beginning. */
const longestError = 64 * 1024;

export interface Exchange {
  readonly method: string;
  readonly target: RequestTarget;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object or list is sent as JSON. */
  readonly body?: Json | undefined;
  /** Sent as it is, instead of `body`. */
  readonly form?: FormData | undefined;
  readonly signal: AbortSignal;
  readonly hide: (text: string) => string;
  /** The longest silence before and within the answer; default: none. */
  readonly idleMs?: number | undefined;
  /** What an answer that is no success has used; null: it does not report that. */
  readonly usageOf?: ((answer: Json) => FailureReport['usage'] | null) | undefined;
}

/** An answer whose head has come. */
export interface ProviderAnswer {
  readonly status: number;
  header(name: string): string | null;
  /** Its bytes, as fast as they are read. @throws CallFailure when they break off, are too many, or stop coming */
  chunks(): AsyncGenerator<Uint8Array>;
  /**
   * Reads its bytes as they come, to their end, or until `take` answers true. The connection then serves the next request
   * where the answer ends soon.
   * @throws CallFailure as `chunks`; and what `take` throws
   */
  read(take: (chunk: Uint8Array) => boolean): Promise<void>;
  /** Closes the connection. */
  close(): void;
}

function bodyOf({ body, form, headers = {} }: Exchange): {
  readonly body?: string | FormData;
  readonly headers: Record<string, string>;
} {
  const sent = { accept: '*/*', 'user-agent': 'capstan', ...headers };
  if (form !== undefined) return { body: form, headers: sent };
  if (body === undefined || body === null) return { headers: sent };
  const text = typeof body === 'string' ? body : writeExactJson(body);
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  if (hasType) return { body: text, headers: sent };
  const type = typeof body === 'string' ? 'text/plain' : 'application/json';
  return { body: text, headers: { ...sent, 'content-type': type } };
}

function placeOf({ method, target }: Exchange): string {
  return `${method} ${target.shown}`;
}

function explainBreak(
  error: unknown,
  exchange: Exchange,
  { silence, what }: { readonly silence: WorkLimit | null; readonly what: string },
): unknown {
  const { signal, hide, idleMs = 0 } = exchange;
  if (signal.aborted) return signal.reason;
  if (isCallFailure(error)) return error;
  if (silence?.isOver === true) {
    return providerFailure('provider_unavailable', `${placeOf(exchange)} was silent for ${idleMs / 1_000} s`);
  }
  const nothing = isUnconnected(error) ? { cost_usd: 0 } : {};
  return providerFailure('provider_unavailable', hide(`${what}: ${causeOf(error)}`), nothing);
}

function decompress(body: Readable, encoding: string | null): Readable {
  const decoder = createDecoder(encoding?.trim().toLowerCase() ?? '');
  if (decoder === null) return body;
  body.once('error', (error) => decoder.destroy(error));
  decoder.once('close', () => body.destroy());
  return body.pipe(decoder);
}

function createDecoder(encoding: string): Transform | null {
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip();
  if (encoding === 'br') return createBrotliDecompress();
  return encoding === 'deflate' ? createInflate() : null;
}

/** How long an answer may stay open after its last event. */
const restMs = 1_000;

/** Bytes of an answer, counted and watched. */
interface AnswerSource {
  readonly stream: Readable;
  readonly silence: WorkLimit | null;
  /** @throws CallFailure when they are too many */
  count(chunk: Uint8Array): void;
  explain(error: unknown): unknown;
}

async function* iterate({ stream, silence, count, explain }: AnswerSource): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of stream) {
      count(chunk);
      yield chunk;
    }
  } catch (error) {
    throw explain(error);
  } finally {
    silence?.end();
  }
}

/** An iterator takes several times as long for each chunk. */
function readAll({ stream, silence, count, explain }: AnswerSource, take: (chunk: Uint8Array) => boolean) {
  return new Promise<void>((resolve, reject) => {
    const stop = (): void => {
      stream.off('data', listen);
      silence?.end();
    };
    const listen = (chunk: Uint8Array): void => {
      try {
        count(chunk);
        if (!take(chunk)) return;
        stop();
        leave(stream);
        resolve();
      } catch (error) {
        stop();
        stream.destroy();
        reject(explain(error));
      }
    };
    stream.on('data', listen);
    stream.once('end', () => {
      stop();
      resolve();
    });
    stream.once('error', (error) => {
      stop();
      reject(explain(error));
    });
  });
}

/** Gives up the rest; it closes the connection unless the rest ends soon. */
function leave(stream: Readable): void {
  stream.resume();
  const timer = setTimeout(() => stream.destroy(), restMs).unref();
  stream.once('close', () => clearTimeout(timer));
}

function toAnswer(
  { statusCode, headers, body }: Awaited<ReturnType<typeof request>>,
  exchange: Exchange,
  silence: WorkLimit | null,
): ProviderAnswer {
  const header = (name: string): string | null => headers[name]?.toString() ?? null;
  const stream = decompress(body, header('content-encoding'));
  // Without a listener, an answer that breaks off would end the process.
  for (const one of new Set([body, stream])) one.on('error', () => undefined);
  let size = 0;
  const source: AnswerSource = {
    stream,
    silence,
    count: (chunk) => {
      silence?.restart();
      size += chunk.length;
      if (size > longestAnswer) throw tooLarge('the answer', longestAnswer);
    },
    explain: (error) => explainBreak(error, exchange, { silence, what: 'the answer broke off' }),
  };
  return {
    status: statusCode,
    header,
    chunks: () => iterate(source),
    read: (take) => readAll(source, take),
    close: () => {
      silence?.end();
      stream.destroy();
    },
  };
}

/** @throws CallFailure unless the answer is 2xx */
export async function openExchange(exchange: Exchange): Promise<ProviderAnswer> {
  const { method, target, signal, hide, idleMs, usageOf } = exchange;
  const silence = idleMs === undefined ? null : createWorkLimit(signal, idleMs);
  let answer: ProviderAnswer;
  try {
    signal.throwIfAborted();
    const stop = silence?.signal ?? signal;
    const options = { method: method as 'POST', ...bodyOf(exchange), signal: stop, dispatcher: serviceAgent };
    answer = toAnswer(await request(target.url, options), exchange, silence);
  } catch (error) {
    silence?.end();
    throw explainBreak(error, exchange, { silence, what: `${placeOf(exchange)} was not answered` });
  }
  const { status, header } = answer;
  if (status >= 200 && status < 300) return answer;
  const text = await readBeginning(answer);
  throw failureOfAnswer({ place: placeOf(exchange), status, text, header, hide, usageOf });
}

/** The beginning of an error. The rest is not read; one that breaks off is shown as far as it came. */
async function readBeginning(answer: ProviderAnswer): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    await answer.read((chunk) => {
      chunks.push(chunk);
      size += chunk.length;
      return size >= longestError;
    });
  } catch {
    // The status is the only known fact.
  }
  if (size >= longestError) answer.close();
  return Buffer.concat(chunks).subarray(0, longestError).toString('utf8');
}

export function tooLarge(what: string, limit: number): CallFailure {
  return providerFailure('provider_refused', `${what} is larger than the allowed ${limit} bytes`);
}

/** The bytes of an answer. @throws CallFailure when they break off or are too many */
export async function readBytes(answer: ProviderAnswer): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  await answer.read((chunk) => {
    chunks.push(chunk);
    return false;
  });
  return Buffer.concat(chunks);
}

/** @throws CallFailure unless the answer is 2xx and JSON; an empty answer is null */
export async function askJson(exchange: Exchange): Promise<Json> {
  const text = (await readBytes(await openExchange(exchange))).toString('utf8');
  if (text.trim() === '') return null;
  try {
    return parseExactJson(text) as Json;
  } catch {
    const { hide } = exchange;
    const seen = hide(text.slice(0, longestError)).slice(0, 100);
    const message = `${placeOf(exchange)} was answered with ${seen}, not with JSON`;
    throw providerFailure('provider_unavailable', hide(message));
  }
}

/** Writes the bytes of an answer into a file. @throws CallFailure when they break off or are more than allowed */
export async function saveBody(
  source: AsyncIterable<Uint8Array>,
  path: string,
  { signal, maxBytes }: { readonly signal: AbortSignal; readonly maxBytes: number },
): Promise<void> {
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
