/**
 * Makes one `POST /exec` and returns its outcome. Never throws for what an instance does: every end is a `CallOutcome`.
 * An instance at work may answer nothing else and accept no connection, so only its machine is asked while a call is
 * open: by TCP keepalive on the call's own connection, which a machine that has vanished does not answer and one that
 * has restarted resets; and, as long as a part of the request is not acknowledged, by the connects of
 * silent-machines.ts.
 */
import { setImmediate } from 'node:timers/promises';
import { catchUpMs, type FreezeClock, neverFrozen } from '@capstan/core/call/freezes';
import type { CallLog } from '@capstan/core/call/log-lines';
import type { CallOutcome, CallProgress } from '@capstan/core/call/outcome';
import { type PreviousFault, writeFault } from '@capstan/core/call/wrong-answer';
import { type CancelSignal, CancelSource, onCancel } from '@capstan/core/cancellation';
import { writeExactJson } from '@capstan/core/contracts/exact-json';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { createTurns, largeTextBytes, type Turns } from '@capstan/core/pacing';
import type { Redactor } from '@capstan/core/secrets/redaction';
import type { TraceHeaders } from '@capstan/core/telemetry/trace-context';
import { AddressRefused, type CarriedRequest, type DialGuard } from '@capstan/guarded-dial/guarded-dial';
import { LRUCache } from 'lru-cache';
import type { Dispatcher } from 'undici';
import { answerLimit, isProgressive, readAnswer, redactAnswer, toOrdinaryAnswer } from './read-answer.ts';
import { createToldLines, type ToldLines } from './response-lines.ts';
import { type InstanceAnswerHead, sendRequest } from './send-request.ts';
import { createSilenceWatch, MachineSilent } from './silent-machines.ts';

export interface CapabilityCall {
  readonly endpoint: string;
  readonly input: JsonObject;
  /** The same on every attempt of a step's revision, until a wrong answer is asked for again. */
  readonly idempotencyKey: string;
  /** 1 for the first. */
  readonly attempt: number;
  readonly timeoutMs: number;
  /** Aborts with the reason `cancelled` when the result is no longer wanted. */
  readonly signal: CancelSignal;
  /** Receives the progress of an instance that reports it. */
  readonly onProgress?: ((progress: CallProgress) => void) | undefined;
  /** Takes the lines that it logs. Default: none are kept. */
  readonly log?: CallLog | undefined;
  /** Receives parts of the result as they are made; the instance is asked for them. Default: it is not. */
  readonly onDelta?: ((delta: Json) => void) | undefined;
  /** Takes secrets out of all that the instance answers. Default: there is none. */
  readonly redactor?: Redactor | undefined;
  /** Of the answer before, when a wrong one is asked for again. Default: none was wrong. */
  readonly previousFault?: PreviousFault | null;
  /** Its position in a trace. Default: it is in none. */
  readonly trace?: TraceHeaders | undefined;
  /** The address for an answer that comes later. Default: the instance answers in place. */
  readonly callbackUrl?: string | undefined;
}

/** How a call ended, and how long it took until then: at most its timeout, without freezes of this process (F3). */
export interface TimedOutcome {
  /** accepted: 202, the answer comes at the address for it. */
  readonly outcome: CallOutcome | { readonly kind: 'accepted' };
  readonly durationMs: number;
}

export interface CapabilityClient {
  call(call: CapabilityCall): Promise<TimedOutcome>;
  close(): Promise<void>;
}

export interface CapabilityClientOptions {
  readonly guard: DialGuard;
  readonly answerLimitBytes: number;
  readonly livenessIntervalMs: number;
  /** Default: the process is not watched. */
  readonly freezes?: FreezeClock;
}

const neverSent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'UND_ERR_CONNECT_TIMEOUT',
]);

type AbortReason = 'timeout' | 'cancelled' | 'abandoned';

/** Reads the reason of an abort: the result is unwanted, or only this process is out of time. */
function whyAborted(signal: CancelSignal): 'cancelled' | 'abandoned' {
  return signal.reason === 'cancelled' ? 'cancelled' : 'abandoned';
}

export function createCapabilityClient(options: CapabilityClientOptions): CapabilityClient {
  const { guard, livenessIntervalMs: intervalMs } = options;
  const silence = createSilenceWatch({ openSocket: guard.openSocket, intervalMs });
  const agent = guard.createAgent({
    connections: 512,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeoutMs: 5_000,
    keepAliveTimeout: 1_000,
    keepaliveDelayMs: Math.max(1_000, intervalMs),
    onConnection: silence.watch,
  });
  const takeTurn = createTurns(setImmediate);
  const targets = new LRUCache<string, Target>({ max: 1_000, memoMethod: toTarget });
  const wire = { agent, takeTurn, targetOf: (endpoint: string) => targets.memo(endpoint) };
  return { call: (call) => exec(wire, call, options), close: () => agent.close() };
}

/** Where the calls of an endpoint go. */
interface Target {
  readonly origin: string;
  readonly path: string;
}

function toTarget(endpoint: string): Target {
  const url = new URL(endpoint);
  return { origin: url.origin, path: `${url.pathname.replace(/\/$/, '')}/exec` };
}

interface Wire {
  readonly agent: Dispatcher;
  /** Large answers are parsed one at a time. */
  readonly takeTurn: Turns;
  readonly targetOf: (endpoint: string) => Target;
}

async function exec(
  { agent, takeTurn, targetOf }: Wire,
  call: CapabilityCall,
  options: CapabilityClientOptions,
): Promise<TimedOutcome> {
  if (call.signal.aborted) return { outcome: { kind: 'unsent' }, durationMs: 0 };
  const stop = new CancelSource<AbortReason>();
  const stopListening = onCancel(call.signal, () => stop.abort(whyAborted(call.signal)));
  const clock = new CallClock(call.timeoutMs, options.freezes ?? neverFrozen, () => stop.abort('timeout'));
  let told = null as ToldLines | null; // most answers are one piece
  const request = toRequest(targetOf(call.endpoint), call);
  try {
    const limitBytes = limitOf(call, options);
    const answer = await sendRequest(agent, request, {
      signal: stop,
      limitOf: (head) => {
        if (isAccepted(call, head)) return 0;
        return isProgressive(head) ? limitBytes : answerLimit(head, limitBytes);
      },
      linesOf: (head) => {
        told = isProgressive(head) ? createToldLines(call, toldLimitOf(call)) : null;
        return told;
      },
    });
    clock.end(request, answer.headers.date);
    if (isAccepted(call, answer)) return { outcome: { kind: 'accepted' }, durationMs: clock.durationMs };
    const shown = call.redactor === undefined ? answer : await redactAnswer(answer, call.redactor);
    const ordinary = isProgressive(shown) ? toOrdinaryAnswer(shown) : shown;
    if (ordinary.body !== null && ordinary.body.length >= largeTextBytes) await takeTurn();
    return { outcome: readAnswer(ordinary, limitBytes), durationMs: clock.durationMs };
  } catch (error) {
    clock.end(request);
    return { outcome: explainFailure(error, stop, call.timeoutMs), durationMs: clock.durationMs };
  } finally {
    told?.end();
    clock.end(request);
    stopListening();
  }
}

/** 202 has this meaning only for an instance that was given an address. */
function isAccepted({ callbackUrl }: CapabilityCall, { status }: InstanceAnswerHead): boolean {
  return status === 202 && callbackUrl !== undefined;
}

/** A process that freezes again and again still ends its calls: so often it waits for what may have arrived. */
const mostDelays = 20;

/** Measures a call, and aborts it after its time. */
class CallClock {
  readonly #startedAtMs = performance.now();
  readonly #timeoutMs: number;
  readonly #freezes: FreezeClock;
  readonly #onTimeout: () => void;
  #timer: NodeJS.Timeout;
  #delays = 0;
  #durationMs: number | null = null;

  constructor(timeoutMs: number, freezes: FreezeClock, onTimeout: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#freezes = freezes;
    this.#onTimeout = onTimeout;
    this.#timer = setTimeout(() => this.#expire(), timeoutMs);
  }

  /** F4 */
  #expire(): void {
    const waits = this.#delays < mostDelays && this.#freezes.isCatchingUp(performance.now());
    this.#delays += 1;
    if (waits) this.#timer = setTimeout(() => this.#expire(), catchUpMs);
    else this.#onTimeout();
  }

  get durationMs(): number {
    return this.#durationMs ?? 0;
  }

  /** The first end counts. @param date of the answer's head */
  end({ carrier }: CarriedRequest, date?: string): void {
    if (this.#durationMs !== null) return;
    clearTimeout(this.#timer);
    const nowMs = performance.now();
    let endedAtMs = nowMs;
    if (this.#freezes.isCatchingUp(nowMs)) {
      const saidMs = date === undefined ? Number.NaN : nowMs + Date.parse(date) - Date.now();
      const reading = { connection: carrier?.ports, saidMs: Number.isNaN(saidMs) ? undefined : saidMs };
      endedAtMs = this.#freezes.arrivedAt(nowMs, reading);
    }
    this.#durationMs = Math.min(Math.max(0, endedAtMs - this.#startedAtMs), this.#timeoutMs);
  }
}

/** An answer in which secrets are searched, which takes some thirty milliseconds for each mebibyte. */
const mostSearchedBytes = 4 * 1_048_576;

function limitOf({ redactor }: CapabilityCall, { answerLimitBytes }: CapabilityClientOptions): number {
  return redactor === undefined ? answerLimitBytes : Math.min(answerLimitBytes, mostSearchedBytes);
}

function toldLimitOf({ redactor }: CapabilityCall): number | undefined {
  return redactor === undefined ? undefined : 2 * mostSearchedBytes;
}

function toRequest({ origin, path }: Target, call: CapabilityCall): CarriedRequest {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, application/x-ndjson;q=0.9',
    'idempotency-key': call.idempotencyKey,
    'x-attempt': String(call.attempt),
    'x-deadline': new Date(Date.now() + call.timeoutMs).toISOString(),
  };
  if (call.onDelta !== undefined) headers['x-stream'] = 'delta';
  if (call.previousFault) headers['x-previous-fault'] = writeFault(call.previousFault);
  if (call.callbackUrl !== undefined) headers['x-callback-url'] = call.callbackUrl;
  Object.assign(headers, call.trace);
  return { origin, path, method: 'POST', headers, body: writeExactJson(call.input) };
}

function explainFailure(
  error: unknown,
  { reason }: CancelSource<AbortReason>,
  timeoutMs: number,
): CallOutcome {
  if (reason !== undefined) {
    switch (reason) {
      case 'timeout':
        return { kind: 'timeout', timeoutMs };
      case 'cancelled':
      case 'abandoned':
        return { kind: reason };
    }
  }
  if (error instanceof AddressRefused) return { kind: 'not_sent', message: error.message };
  if (error instanceof MachineSilent) return { kind: 'lost', message: error.message };
  const { code, message, syscall } = error as Partial<NodeJS.ErrnoException>;
  const wasConnected = syscall === 'read' || syscall === 'write'; // a route may be lost later, with the same code
  return code !== undefined && neverSent.has(code) && !wasConnected
    ? { kind: 'not_sent', message: `no connection (${code})` }
    : { kind: 'lost', message: `the connection broke (${code ?? message ?? 'unknown'})` };
}
