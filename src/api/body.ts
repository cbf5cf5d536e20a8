/**
 * Receives a body of a known size class: media type first, then size and the sender's share of memory during the
 * transfer, then characters, then one linear scan, and only then `JSON.parse`, whose numbers must be those of the text.
 * Large bodies are processed one at a time.
 *
 * The memory of bodies in transfer has one budget per process, and a share of it for each sender: a key or, before
 * authentication, an address. A body above it is refused, so that many slow bodies neither fill the process nor block
 * other senders.
 */

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { Json } from '@capstan/core/contracts/primitives';
import { AppError, refuseRequest } from '@capstan/core/errors/app-error';
import { findLostNumbers } from '@capstan/core/json/numbers';
import { findJsonFault } from '@capstan/core/json/scan';
import { createTurns, largeTextBytes, type Turns } from '@capstan/core/pacing';
import { createTally } from '@capstan/core/tally';
import type { BodyKind, BodySize, ReceivedRaw, ReceivedStream, ReceivedText } from './input.ts';
import { type ApiConfig, type BodyLimits, bodyLimits, httpLimits } from './limits.ts';

/** Memory of a chunk besides its bytes: a body that arrives byte by byte takes a hundred times its length. */
const pieceBytes = 200;

interface HeldBody {
  /** @returns null, or the reason to refuse the body */
  take(bytes: number): AppError | null;
  /** Called when the body has been parsed or refused. */
  release(): void;
}

interface BodyBudget {
  open(sender: string): HeldBody;
  /** Sum over all senders. */
  readonly heldBytes: number;
}

interface BodyBudgetLimits {
  readonly processBytes: number;
  readonly senderBytes: number;
}

function refuse(sender: string, { senderBytes }: BodyBudgetLimits): AppError {
  const message = `the bodies that ${sender} is sending hold more than the allowed ${senderBytes} bytes together; send fewer at once`;
  return new AppError('rate_limited', message, { retryAfterS: 1 });
}

function refuseAll({ processBytes }: BodyBudgetLimits): AppError {
  const message = `the bodies that this server receives hold ${processBytes} bytes, which is the limit; retry later`;
  return new AppError('unavailable', message, { retryAfterS: 1 });
}

/** The memory budget for bodies in transfer; see the header. */
function createBodyBudget(limits: BodyBudgetLimits): BodyBudget {
  const bySender = createTally();
  let all = 0;
  const add = (sender: string, bytes: number): void => {
    bySender.add(sender, bytes);
    all += bytes;
  };
  return {
    open: (sender) => {
      let taken = 0;
      return {
        take: (bytes) => {
          const wanted = bytes + pieceBytes;
          if (bySender.of(sender) + wanted > limits.senderBytes) return refuse(sender, limits);
          if (all + wanted > limits.processBytes) return refuseAll(limits);
          add(sender, wanted);
          taken += wanted;
          return null;
        },
        release: () => {
          add(sender, -taken);
          taken = 0;
        },
      };
    },
    get heldBytes() {
      return all;
    },
  };
}

export interface ReceivedBody {
  readonly bytes: Buffer;
  readonly body: unknown;
}

const jsonTypes = ['application/json'];
const definitionTypes = ['application/json', 'application/yaml', 'application/x-yaml', 'text/yaml'];
const nothing = Buffer.alloc(0);

function mediaTypeOf(contentType: string | undefined): string {
  return contentType?.split(';')[0]?.trim().toLowerCase() ?? '';
}

function requireUncompressed({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding === 'identity') return;
  const message = `Content-Encoding ${encoding} is not supported; send the body uncompressed`;
  throw new AppError('unsupported_media_type', message);
}

function requireType(request: IncomingMessage, allowed: readonly string[]): string {
  const seen = mediaTypeOf(request.headers['content-type']);
  requireUncompressed(request);
  if (allowed.includes(seen)) return seen;
  const found = seen === '' ? 'no Content-Type' : `Content-Type ${seen}`;
  throw new AppError('unsupported_media_type', `${found}; this route accepts ${allowed.join(', ')}`);
}

function refuseSize(limit: number): AppError {
  return new AppError('body_too_large', `the body is larger than the allowed ${limit} bytes`);
}

interface ReceivedChunks {
  readonly chunks: readonly Buffer[];
  readonly size: number;
}

interface BodyReading {
  readonly request: IncomingMessage;
  readonly limits: BodyLimits;
  readonly takeTurn: Turns;
  readonly held: HeldBody;
}

/** A large body waits for its turn: its check, and the synchronous part of its handler, run alone. */
async function receive({ request, limits, takeTurn, held }: BodyReading): Promise<Buffer> {
  const { chunks, size } = await receiveChunks(request, limits.bytes, held);
  if (size >= largeTextBytes) await takeTurn();
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size);
}

/**
 * A small body comes with its headers: it needs no events, and is not held in transfer.
 * @returns null when it has not arrived
 */
function takeArrived(request: IncomingMessage, { bytes: limit }: BodyLimits): Buffer | null {
  const { readableLength: size, headers } = request;
  if (size === 0 || size !== Number(headers['content-length']) || request.destroyed) return null;
  if (size > limit) throw refuseSize(limit);
  if (size >= largeTextBytes) return null;
  const bytes: Buffer = request.read();
  request.resume(); // its end is still to come
  return bytes;
}

/** Uses events: an iterator over the stream takes several times as long for a small body. */
function receiveChunks(request: IncomingMessage, limit: number, held: HeldBody): Promise<ReceivedChunks> {
  return new Promise((resolve, reject) => {
    const { bodyTimeoutMs } = httpLimits;
    const chunks: Buffer[] = [];
    let size = 0;
    const end = (): void => {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
    };
    const refuse = (error: AppError): void => {
      end();
      request.pause();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      const refusal = size > limit ? refuseSize(limit) : held.take(chunk.length);
      if (refusal === null) chunks.push(chunk);
      else refuse(refusal);
    };
    const onEnd = (): void => {
      end();
      resolve({ chunks, size });
    };
    const onClose = (): void =>
      refuse(new AppError('malformed_json', 'the connection ended before the body did'));
    const timer = setTimeout(() => {
      refuse(new AppError('request_timeout', `the body took longer than ${bodyTimeoutMs} ms`));
    }, bodyTimeoutMs);
    if (request.destroyed) return onClose();
    if (Number(request.headers['content-length'] ?? 0) > limit) return refuse(refuseSize(limit));
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}

function requireText(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw new AppError('malformed_json', 'the body is not UTF-8');
  if (bytes.includes(0)) throw new AppError('malformed_json', 'the body holds NUL');
}

/** @throws AppError `json_too_deep`, `proto_key` or `malformed_json` */
function scan(bytes: Buffer, limits: BodyLimits): void {
  const fault = findJsonFault(bytes, limits);
  if (fault !== null) throw new AppError(fault.code, `the body ${fault.message}`);
}

/**
 * @param size of a `chat`, the text may be passed on, so that its numbers and characters are checked where it is not
 * @throws AppError `malformed_json`, and `request_invalid` for numbers that would change
 */
function parse(text: string, size: BodySize): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof SyntaxError ? cause.message.slice(0, 200) : 'not JSON';
    throw new AppError('malformed_json', `the body is not JSON: ${reason}`, { cause });
  }
  const lost = size === 'chat' ? [] : findLostNumbers(text);
  if (lost.length === 0) return value;
  throw refuseRequest(lost.map((number) => ({ ...number, code: 'number_inexact' })));
}

interface SizedLimits {
  readonly limits: BodyLimits;
  readonly size: BodySize;
}

function readJson(bytes: Buffer, { limits, size }: SizedLimits): ReceivedBody {
  requireText(bytes);
  scan(bytes, limits);
  return { bytes, body: parse(bytes.toString('utf8'), size) };
}

function isAbsent({ headers }: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  return length === '0' || (length === undefined && coding === undefined);
}

/** Does not parse the text: its reader reports every mistake with line and column. */
async function readDefinitionBody(reading: BodyReading): Promise<ReceivedBody> {
  const { request, limits } = reading;
  const contentType = requireType(request, definitionTypes);
  const bytes = await receive(reading);
  requireText(bytes);
  if (contentType === 'application/json') scan(bytes, limits);
  const body: ReceivedText = { text: bytes.toString('utf8'), contentType };
  return { bytes, body };
}

/** Receives a body whose form its handler checks. */
async function readRawBody(reading: BodyReading): Promise<ReceivedBody> {
  const { request, limits } = reading;
  requireUncompressed(request);
  const body: ReceivedRaw = {
    mediaType: mediaTypeOf(request.headers['content-type']),
    readJson: (bytes) => readJson(bytes, { limits, size: 'data' }).body as Json,
    readText: (bytes) => {
      requireText(bytes);
      return bytes.toString('utf8');
    },
  };
  return { bytes: await receive(reading), body };
}

function takeStream(request: IncomingMessage): ReceivedBody {
  request.setTimeout(httpLimits.mediaIdleMs, () => request.destroy());
  const body: ReceivedStream = {
    stream: request,
    contentType: request.headers['content-type'] ?? 'application/octet-stream',
  };
  return { bytes: nothing, body };
}

/**
 * @param sender the owner of the body's share of memory: the id of a key, or an address
 * @throws AppError `unsupported_media_type`, `body_too_large`, `malformed_json`, `json_too_deep`, `proto_key`,
 * `request_invalid`, `request_timeout`, `rate_limited`, `unavailable`
 */
export type ReadBody = (
  request: IncomingMessage,
  kind: BodyKind,
  sender: string,
) => Promise<ReceivedBody> | ReceivedBody;

function createBudget({ BODIES_BYTES, BODY_LIMIT_BYTES, DEFINITION_LIMIT_BYTES }: ApiConfig): BodyBudget {
  // Holds a body of the largest size, and as much again for the overhead of its chunks.
  const senderBytes = Math.max(BODIES_BYTES / 4, 2 * BODY_LIMIT_BYTES, 2 * DEFINITION_LIMIT_BYTES);
  return createBodyBudget({ processBytes: Math.max(BODIES_BYTES, senderBytes), senderBytes });
}

export function createReadBody(config: ApiConfig): ReadBody {
  const takeTurn = createTurns(setImmediate); // shared by all large bodies
  const budget = createBudget(config);
  const limitsOf = bodyLimits(config);
  const reading = async <T>(sender: string, read: (held: HeldBody) => Promise<T>): Promise<T> => {
    const held = budget.open(sender);
    try {
      return await read(held);
    } finally {
      held.release();
    }
  };
  const readJsonBody = (request: IncomingMessage, size: BodySize, sender: string) => {
    const limits = limitsOf[size];
    requireType(request, jsonTypes);
    const arrived = takeArrived(request, limits);
    if (arrived !== null) return readJson(arrived, { limits, size });
    return reading(sender, async (held) =>
      readJson(await receive({ request, limits, takeTurn, held }), { limits, size }),
    );
  };
  return (request, kind, sender) => {
    switch (kind.kind) {
      case 'json':
        return kind.optional && isAbsent(request)
          ? { bytes: nothing, body: {} }
          : readJsonBody(request, kind.size, sender);
      case 'definition': {
        const limits = limitsOf.definition;
        return reading(sender, (held) => readDefinitionBody({ request, limits, takeTurn, held }));
      }
      case 'raw':
        return reading(sender, (held) => readRawBody({ request, limits: limitsOf.data, takeTurn, held }));
      case 'stream':
        return takeStream(request);
      case 'none':
        return { bytes: nothing, body: undefined };
    }
  };
}
