/** Reads an instance's answer to `/exec`: bounded, JSON only, redirects are failures. */
import type { Dispatcher } from 'undici';
import type { JsonObject } from '../contracts/primitives.ts';
import type { CallOutcome } from '../core/delivery/outcome.ts';

const errorTextLimit = 65_536;

export const readAnswer = async (
  answer: Dispatcher.ResponseData,
  limitBytes: number,
): Promise<CallOutcome> => {
  const { statusCode: status, headers } = answer;
  const contentType = String(headers['content-type'] ?? '');
  const isJson = /^application\/([\w.+-]+\+)?json\b/i.test(contentType);
  if (status >= 200 && status < 300) {
    if (!isJson) return discard(answer, `HTTP ${status} with content type "${contentType}", not JSON`);
    const body = await readBounded(answer, limitBytes);
    if (body === null) return { kind: 'too_large', limitBytes };
    return parseObject(body, status);
  }
  if (status < 400) return discard(answer, `HTTP ${status}, a redirect; an instance answers itself`);
  if (status === 429 || status === 503) {
    drop(answer);
    return { kind: 'overloaded', status, retryAfterMs: retryAfter(headers['retry-after']) };
  }
  const text = (await readBounded(answer, errorTextLimit))?.toString('utf8') ?? '';
  const message = errorText(text);
  if (status >= 500) return { kind: 'failed', status, message };
  return isJson
    ? { kind: 'rejected', status, message }
    : { kind: 'invalid', message: `HTTP ${status} with content type "${contentType}": ${message}` };
};

/** Closes the connection instead of reading on; that it was closed is no news then. */
const drop = ({ body }: Dispatcher.ResponseData): void => {
  body.on('error', () => undefined);
  body.destroy();
};

const discard = (answer: Dispatcher.ResponseData, message: string): CallOutcome => {
  drop(answer);
  return { kind: 'invalid', message };
};

/** Null when there is more than the limit; the rest is not read. */
const readBounded = async (answer: Dispatcher.ResponseData, limit: number): Promise<Buffer | null> => {
  const announced = Number(answer.headers['content-length'] ?? 0);
  if (announced > limit) {
    drop(answer);
    return null;
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer.body) {
    size += (chunk as Buffer).length;
    if (size > limit) {
      drop(answer);
      return null;
    }
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks, size);
};

const parseObject = (body: Buffer, status: number): CallOutcome => {
  if (body.length === 0) return { kind: 'invalid', message: `HTTP ${status} with an empty body` };
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      return { kind: 'answered', body: value as JsonObject };
    }
    return { kind: 'invalid', message: 'the answer is JSON, but not an object' };
  } catch (error) {
    return { kind: 'invalid', message: `the answer is not JSON: ${(error as Error).message}` };
  }
};

/** The specification's `error` string where there is one, else the beginning of the text. */
const errorText = (text: string): string => {
  try {
    const value = JSON.parse(text) as { error?: unknown };
    if (typeof value?.error === 'string') return value.error.slice(0, 8_192);
  } catch {
    // Not JSON: the raw text says more than nothing.
  }
  return text.replaceAll('\u0000', '').slice(0, 500) || 'no message';
};

/** Seconds or an HTTP date. */
const retryAfter = (value: string | string[] | undefined): number | null => {
  if (typeof value !== 'string') return null;
  const seconds = Number(value);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) && ms >= 0 ? ms : null;
};
