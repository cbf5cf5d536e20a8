/**
 * One `POST /exec` after its body is read: check, wait for a place, run, check the output, clean up.
 *
 * A caller that takes it (`Accept: application/x-ndjson`) is sent the call's progress, a line each, and at last
 * the ordinary answer as a line. A call that says nothing of its progress is answered as ever.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { isCallFailure } from './call-failure.ts';
import type { Capability, ExecContext } from './define-capability.ts';
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
  readonly progress: ExecContext['progress'];
}

export function failure(status: number, error: string): ExecReply {
  return { status, body: { ok: false, error } };
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error && thrown.message !== '' ? thrown.message : String(thrown);
}

/** 422, unless `exec` asked for another answer. */
function answerThrown(thrown: unknown): ExecReply {
  const error = messageOf(thrown);
  if (!isCallFailure(thrown)) return failure(422, error);
  const { status, retryAfterS, code } = thrown;
  const headers = {
    ...(retryAfterS === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterS)) }),
    ...(code === undefined ? {} : { 'x-error-code': code }),
  };
  return { ...failure(status, error), headers };
}

/** RFC 3339, or milliseconds since 1970. */
function readDeadline(header: string | string[] | undefined): Date | undefined {
  const text = String(header ?? '');
  const deadline = new Date(/^\d+$/.test(text) ? Number(text) : text);
  return Number.isNaN(deadline.getTime()) ? undefined : deadline;
}

function readCallFacts(
  headers: IncomingHttpHeaders,
): Pick<ExecContext, 'deadline' | 'idempotencyKey' | 'traceparent'> {
  const deadline = readDeadline(headers['x-deadline']);
  const key = headers['idempotency-key'];
  const { traceparent } = headers;
  return {
    ...(deadline === undefined ? {} : { deadline }),
    ...(typeof key === 'string' ? { idempotencyKey: key } : {}),
    ...(typeof traceparent === 'string' ? { traceparent } : {}),
  };
}

async function perform(
  capability: Capability,
  host: CallHost,
  call: Pick<InstanceCall, 'headers' | 'signal' | 'progress'> & { readonly input: unknown },
): Promise<ExecReply> {
  const { media, close } = openCallMedia(host.transfer, call.signal);
  try {
    const { signal, progress } = call;
    const context = { signal, progress, media, cacheDir: host.cacheDir, log: host.log };
    const output = await capability.exec(call.input, { ...context, ...readCallFacts(call.headers) });
    const checked = await capability.checkOutput(output);
    if (checked.ok) return { status: 200, body: { ok: true, output: checked.value } };
    return failure(422, `the output does not match its own schema: ${checked.error}`);
  } finally {
    await close();
  }
}

/** Never throws: whatever goes wrong is the answer; 503 when the instance stops before the work is done. */
export async function answerCall(
  capability: Capability,
  host: CallHost & { readonly queue: CallQueue; isStopping(): boolean },
  call: InstanceCall,
): Promise<ExecReply> {
  const { headers, signal, progress } = call;
  try {
    const checked = await capability.checkInput(call.value);
    if (!checked.ok) return failure(422, checked.error);
    return await host.queue.run(signal, () => {
      return perform(capability, host, { input: checked.value, headers, signal, progress });
    });
  } catch (error) {
    if (signal.aborted && host.isStopping()) return failure(503, 'the instance is stopping');
    host.log(`exec failed: ${messageOf(error)}`);
    return answerThrown(error);
  }
}

/** First come, first served places for the calls of one instance. Nothing is refused: a call too many waits. */
export interface CallQueue {
  /** Calls in work or waiting. */
  readonly depth: number;
  /** Runs `work` when a place is free; rejects with the signal's reason when it aborts before that. */
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

/** Lines that come sooner are left out, but for the last one. */
const pauseMs = 250;

export function createProgressWriter(
  request: IncomingMessage,
  response: ServerResponse,
): ExecContext['progress'] {
  const isWanted = String(request.headers.accept ?? '').includes('application/x-ndjson');
  let toldAt = Number.NEGATIVE_INFINITY;
  return (fraction, message) => {
    const now = performance.now();
    const isSoon = now - toldAt < pauseMs && fraction < 1;
    if (!isWanted || isSoon || response.destroyed || response.writableEnded) return;
    toldAt = now;
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    const progress = Math.min(1, Math.max(0, Number(fraction) || 0));
    response.write(`${JSON.stringify({ progress, message: message?.slice(0, 200) })}\n`);
  };
}

/** An answer whose head has gone already says what the head would have said. */
export function toLastLine({ status, body, headers }: ExecReply): string {
  const retryAfter = headers?.['retry-after'];
  const code = headers?.['x-error-code'];
  const head = {
    status,
    ...(retryAfter === undefined ? {} : { retry_after_s: Number(retryAfter) }),
    ...(code === undefined ? {} : { error_code: code }),
  };
  return `${JSON.stringify(status === 200 ? body : { ...body, ...head })}\n`;
}
