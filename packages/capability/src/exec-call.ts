/**
 * One `POST /exec` after its body is read: check the input, wait for a slot, run, check the output, clean up.
 *
 * A caller that sends `Accept: application/x-ndjson` receives the progress and the log messages of the call, one line
 * each, and with `X-Stream: delta` the parts of its result too. The last line is the ordinary answer. A call that
 * reports nothing is answered as usual.
 */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { readFault } from '@capstan/core/call/wrong-answer';
import type { LogLevel } from '@capstan/core/contracts/event';
import { writeExactJson } from '@capstan/core/contracts/exact-json';
import type { Json } from '@capstan/core/contracts/primitives';
import { isPlainObject } from '@capstan/core/json/values';
import { isAnswerLater } from './answer-later.ts';
import { isCallFailure } from './call-failure.ts';
import type { CallLogger, Capability, ExecContext } from './define-capability.ts';
import { openCallMedia } from './media/call-media.ts';
import type { MediaTransfer } from './media/media-transfer.ts';

export interface ExecReply {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What all calls of an instance share. */
export interface CallHost {
  readonly transfer: MediaTransfer;
  readonly cacheDir: string;
  log(line: string): void;
}

/** A request whose body was read. */
export interface InstanceCall {
  readonly value: unknown;
  readonly headers: IncomingHttpHeaders;
  readonly signal: AbortSignal;
  readonly teller: CallTeller;
}

export function failure(status: number, error: string): ExecReply {
  return { status, body: { ok: false, error } };
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error && thrown.message !== '' ? thrown.message : String(thrown);
}

/** 422, unless `exec` threw a CallFailure. */
function answerThrown(thrown: unknown): ExecReply {
  const error = messageOf(thrown);
  if (!isCallFailure(thrown)) return failure(422, error);
  const { status, retryAfterS, code, report } = thrown;
  const headers = {
    ...(retryAfterS === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterS)) }),
    ...(code === undefined ? {} : { 'x-error-code': code }),
  };
  return { status, body: { ok: false, error, ...report }, headers };
}

/** A result that its own schema refuses was paid for anyway. */
function paidFacts(output: unknown): object {
  const { usage, cost_usd } = isPlainObject(output) ? output : {};
  return {
    ...(isPlainObject(usage) ? { usage } : {}),
    ...(typeof cost_usd === 'number' && cost_usd >= 0 ? { cost_usd } : {}),
  };
}

/** RFC 3339, or milliseconds since 1970. */
function readDeadline(header: string | string[] | undefined): Date | undefined {
  const text = String(header ?? '');
  const deadline = new Date(/^\d+$/.test(text) ? Number(text) : text);
  return Number.isNaN(deadline.getTime()) ? undefined : deadline;
}

function readCallFacts(
  headers: IncomingHttpHeaders,
): Pick<
  ExecContext,
  'deadline' | 'idempotencyKey' | 'previousFault' | 'callbackUrl' | 'traceparent' | 'tracestate'
> {
  const deadline = readDeadline(headers['x-deadline']);
  const key = headers['idempotency-key'];
  const fault = headers['x-previous-fault'];
  const previousFault = typeof fault === 'string' ? readFault(fault) : undefined;
  const { traceparent, tracestate, 'x-callback-url': callbackUrl } = headers;
  return {
    ...(deadline === undefined ? {} : { deadline }),
    ...(typeof key === 'string' ? { idempotencyKey: key } : {}),
    ...(previousFault === undefined ? {} : { previousFault }),
    ...(typeof callbackUrl === 'string' ? { callbackUrl } : {}),
    ...(typeof traceparent === 'string' ? { traceparent } : {}),
    ...(typeof tracestate === 'string' ? { tracestate } : {}),
  };
}

/** Functions whose fault was printed. */
const faulty = new WeakSet<() => readonly string[]>();

/** Nothing where the router infers it. A fault is printed once: work that is done is worth more than this report. */
export function residentOf(
  { resident }: Pick<Capability, 'resident'>,
  print: (line: string) => void,
): { readonly resident?: string[] } {
  if (resident === undefined) return {};
  try {
    const keys: unknown = resident();
    if (Array.isArray(keys) && keys.every((key) => typeof key === 'string')) return { resident: keys };
    throw new Error(`it returned ${typeof keys}, and a list of texts is needed`);
  } catch (error) {
    if (!faulty.has(resident)) print(`resident failed, and is left out: ${messageOf(error)}`);
    faulty.add(resident);
    return {};
  }
}

async function perform(
  capability: Capability,
  host: CallHost,
  call: Pick<InstanceCall, 'headers' | 'signal' | 'teller'> & { readonly input: unknown },
): Promise<ExecReply> {
  const { media, close } = openCallMedia(host.transfer, call.signal);
  try {
    const { signal, teller } = call;
    const log = createCallLogger(host, teller);
    const { progress, delta } = teller;
    const context = { signal, progress, delta, media, cacheDir: host.cacheDir, log };
    const output = await capability.exec(call.input, { ...context, ...readCallFacts(call.headers) });
    const checked = await capability.checkOutput(output);
    if (checked.ok)
      return {
        status: 200,
        body: { ok: true, output: checked.value, ...residentOf(capability, host.log) },
      };
    const error = `the output does not match its own schema: ${checked.error}`;
    const headers = { 'x-error-code': 'output_invalid' };
    return { status: 422, body: { ok: false, error, ...paidFacts(output) }, headers };
  } finally {
    await close().catch((error) => host.log(`its files were not deleted: ${messageOf(error)}`));
  }
}

/** Never throws: every error becomes an answer; 503 when the instance stops before the work is done. */
export async function answerCall(
  capability: Capability,
  host: CallHost & { readonly queue: CallQueue; isStopping(): boolean },
  call: InstanceCall,
): Promise<ExecReply> {
  const { headers, signal, teller } = call;
  try {
    const checked = await capability.checkInput(call.value);
    if (!checked.ok) return failure(422, checked.error);
    return await host.queue.run(signal, () =>
      perform(capability, host, { input: checked.value, headers, signal, teller }),
    );
  } catch (error) {
    if (isAnswerLater(error)) return { status: 202, body: { ok: true } };
    if (signal.aborted && host.isStopping()) return failure(503, 'the instance is stopping');
    host.log(`exec failed: ${messageOf(error)}`);
    return answerThrown(error);
  }
}

/** A first-come, first-served queue for the calls of one instance. No call is refused: excess calls wait. */
export interface CallQueue {
  /** Calls that run or wait. */
  readonly depth: number;
  /** Runs `work` when a slot is free; rejects with the signal's reason if the signal aborts first. */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>;
}

export function createCallQueue(places: number): CallQueue {
  const waiting: (() => void)[] = [];
  let working = 0;

  const enter = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const start = () => {
        signal.removeEventListener('abort', giveUp);
        working += 1;
        resolve();
      };
      const giveUp = () => {
        waiting.splice(waiting.indexOf(start), 1);
        reject(signal.reason);
      };
      if (signal.aborted) return reject(signal.reason);
      if (working < places) return start();
      signal.addEventListener('abort', giveUp, { once: true });
      waiting.push(start);
    });

  return {
    get depth() {
      return working + waiting.length;
    },
    run: async (signal, work) => {
      await enter(signal);
      try {
        return await work();
      } finally {
        working -= 1;
        waiting.shift()?.();
      }
    },
  };
}

/** Reports progress, log messages and parts of the result of a call to its caller. */
export interface CallTeller {
  readonly progress: ExecContext['progress'];
  readonly delta: ExecContext['delta'];
  /** @returns false when the caller does not accept lines */
  log(level: LogLevel, message: string): boolean;
}

/** Progress reports that follow sooner are dropped, except a progress of 1. */
const pauseMs = 250;
const longestMessage = { progress: 200, log: 2_000 };
/** Pieces of a text, with no character cut in two: all of it escaped, a line stays below the 16 kB that are read. */
const deltaPieces = /[\s\S]{1,1250}/gu;
/** The router reads no longer line of a part, newline included. */
const longestDeltaLine = 16_384;

/** @throws Error for a part that the router would drop: a caller who gets the others would take them for all */
function toDeltaLine(delta: Json): string {
  const line = `${JSON.stringify({ delta })}\n`;
  const size = line.length * 3 <= longestDeltaLine ? line.length : Buffer.byteLength(line);
  if (size <= longestDeltaLine) return line;
  throw new Error(`a part of the result has ${size} bytes of JSON; allowed are ${longestDeltaLine}`);
}

export function createCallTeller(request: IncomingMessage, response: ServerResponse): CallTeller {
  const isWanted = String(request.headers.accept ?? '').includes('application/x-ndjson');
  const wantsDeltas = request.headers['x-stream'] === 'delta';
  let toldAt = Number.NEGATIVE_INFINITY;
  const tellLine = (line: string): boolean => {
    if (!isWanted || response.destroyed || response.writableEnded) return false;
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.write(line);
    return true;
  };
  const tell = (line: object): boolean => tellLine(`${JSON.stringify(line)}\n`);
  return {
    progress: (fraction, message) => {
      const now = performance.now();
      if (now - toldAt < pauseMs && fraction < 1) return;
      const progress = Math.min(1, Math.max(0, Number(fraction) || 0));
      if (tell({ progress, message: message?.slice(0, longestMessage.progress) })) toldAt = now;
    },
    delta: (part) => {
      if (!wantsDeltas) return;
      const parts = typeof part === 'string' ? (part.match(deltaPieces) ?? []) : [part];
      for (const delta of parts) tellLine(toDeltaLine(delta));
    },
    log: (level, message) => tell({ log: { level, message: message.slice(0, longestMessage.log) } }),
  };
}

function createCallLogger({ log }: CallHost, teller: CallTeller): CallLogger {
  const at = (level: LogLevel) => (message: string) => {
    if (!teller.log(level, String(message))) log(`${level}: ${message}`);
  };
  return Object.assign((line: string) => log(line), {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  });
}

/** The status and headers have already been sent, so the last line carries them for a failure. */
export function toLastLine({ status, body, headers }: ExecReply): string {
  if (status === 202) return toLastLine(failure(422, 'a call that has reported lines is answered in place'));
  const retryAfter = headers?.['retry-after'];
  const code = headers?.['x-error-code'];
  const head = {
    status,
    ...(retryAfter === undefined ? {} : { retry_after_s: Number(retryAfter) }),
    ...(code === undefined ? {} : { error_code: code }),
  };
  return `${writeExactJson(status === 200 ? body : { ...body, ...head })}\n`;
}
