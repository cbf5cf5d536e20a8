/** Reads an instance's answer to `/exec`: bounded, JSON only, redirects are failures. */
import { isUtf8 } from 'node:buffer';
import type { Dispatcher } from 'undici';
import { findAnswerFault } from '../core/call/answer-fault.ts';
import { type CallOutcome, kindOfStatus } from '../core/call/outcome.ts';
import { describeValue } from '../core/expression/evaluation.ts';
import { isPlainObject } from '../core/json-type.ts';

const errorTextLimit = 65_536;

export async function readAnswer(answer: Dispatcher.ResponseData, limitBytes: number): Promise<CallOutcome> {
  const { statusCode: status, headers } = answer;
  const contentType = String(headers['content-type'] ?? '');
  const isJson = /^application\/([\w.+-]+\+)?json\b/i.test(contentType);
  if (status === 204 || status === 205) {
    drop(answer);
    return { kind: 'malformed', message: `HTTP ${status}, which has no body; a JSON object is needed` };
  }
  if (status >= 200 && status < 300) {
    if (!isJson) return discard(answer, `HTTP ${status} with content type "${contentType}", not JSON`);
    const body = await readBounded(answer, limitBytes);
    if (body === null) return { kind: 'too_large', limitBytes };
    return parseObject(body, status);
  }
  if (status < 400) return discard(answer, `HTTP ${status}, a redirect; an instance answers itself`);
  const kind = kindOfStatus(status);
  if (kind === 'overloaded') {
    drop(answer);
    return { kind, status, retryAfterMs: retryAfter(headers['retry-after']) };
  }
  const text = (await readBounded(answer, errorTextLimit))?.toString('utf8') ?? '';
  const message = errorText(text);
  const errorCode = readErrorCode(headers['x-error-code']);
  const error = errorCode === undefined ? { status, message } : { status, message, errorCode };
  return kind === 'failed' || isJson
    ? { kind, ...error }
    : { kind: 'invalid', message: `HTTP ${status} with content type "${contentType}": ${message}` };
}

/** Closes the connection instead of reading on; that it was closed is no news then. */
function drop({ body }: Dispatcher.ResponseData): void {
  body.on('error', () => undefined);
  body.destroy();
}

function discard(answer: Dispatcher.ResponseData, message: string): CallOutcome {
  drop(answer);
  return { kind: 'invalid', message };
}

/**
 * Null when there is more than the limit; the rest is not read. By events: an iterator over the stream takes several
 * times as long for a small answer.
 */
function readBounded(answer: Dispatcher.ResponseData, limit: number): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const { body, headers } = answer;
    const chunks: Buffer[] = [];
    let size = 0;
    const refuse = (): void => {
      drop(answer);
      resolve(null);
    };
    if (Number(headers['content-length'] ?? 0) > limit) return refuse();
    body.on('error', reject);
    body.on('close', () => reject(new Error('closed before its end'))); // nothing, when it has ended
    body.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) refuse();
      else chunks.push(chunk);
    });
    body.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size)));
  });
}

function parseObject(body: Buffer, status: number): CallOutcome {
  if (body.length === 0) return { kind: 'invalid', message: `HTTP ${status} with an empty body` };
  if (!isUtf8(body))
    return { kind: 'malformed', message: 'the answer is not UTF-8, which JSON is written in' };
  try {
    return readObject(JSON.parse(body.toString('utf8')));
  } catch (error) {
    return { kind: 'invalid', message: `the answer is not JSON: ${(error as Error).message}` };
  }
}

function readObject(value: unknown): CallOutcome {
  if (!isPlainObject(value)) {
    return { kind: 'malformed', message: `the answer is ${describeValue(value)}, not an object` };
  }
  const fault = findAnswerFault(value);
  return fault === null
    ? { kind: 'answered', body: value }
    : { kind: 'malformed', message: `the answer ${fault}` };
}

/** The specification's `error` string where there is one, else the beginning of the text. */
function errorText(text: string): string {
  try {
    const value = JSON.parse(text) as { error?: unknown };
    if (typeof value?.error === 'string') return value.error.slice(0, 8_192);
  } catch {
    // Not JSON: the raw text says more than nothing.
  }
  return text.replaceAll('\u0000', '').slice(0, 500) || 'no message';
}

/** What an instance calls its error, for those who know its trade; anything but a short name is none. */
function readErrorCode(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && /^[a-z][a-z0-9_]{0,63}$/.test(value) ? value : undefined;
}

/** Seconds or an HTTP date. */
function retryAfter(value: string | string[] | undefined): number | null {
  if (typeof value !== 'string') return null;
  const seconds = Number(value);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) && ms >= 0 ? ms : null;
}
