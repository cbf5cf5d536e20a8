/**
 * Server-sent events. Of a run: `id` is the event's seq, so a client that comes back with `Last-Event-ID` misses
 * nothing; a comment every 15 s keeps proxies from closing a quiet stream; the stream ends after the last event.
 */
import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import type { RunEvent } from '../contracts/event.ts';
import { type CancelSignal, CancelSource, onCancel, toAbortSignal } from '../core/cancellation.ts';

function toFrame(event: RunEvent): string {
  return `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

async function copy(texts: AsyncIterable<string>, out: PassThrough, signal: CancelSignal): Promise<void> {
  const stopped = toAbortSignal(signal);
  for await (const text of texts) {
    if (!out.write(text)) await once(out, 'drain', { signal: stopped });
    if (signal.aborted) return;
  }
}

async function* mapAll<Value>(values: AsyncIterable<Value>, toText: (value: Value) => string) {
  for await (const value of values) yield toText(value);
}

interface EventStreamOptions {
  /** Ends the stream early; a failing source cuts it off, so that the client comes back. */
  readonly signal: CancelSignal;
  readonly commentMs: number;
}

/** @param watch reads the events; its signal stops once nobody reads the stream any more */
export function streamEvents(
  watch: (signal: CancelSignal) => AsyncIterable<RunEvent>,
  options: EventStreamOptions,
): Readable {
  return streamText(watch, toFrame, options);
}

/** The same of whatever can be written as events. */
export function streamText<Value>(
  watch: (signal: CancelSignal) => AsyncIterable<Value>,
  toText: (value: Value) => string,
  { signal, commentMs }: EventStreamOptions,
): Readable {
  const out = new PassThrough();
  const unread = new CancelSource<'gone'>();
  const stopListening = onCancel(signal, () => unread.abort('gone'));
  out.write(': open\n\n');
  const comments = setInterval(() => {
    if (!out.writableNeedDrain) out.write(': still here\n\n');
  }, commentMs);
  const release = (): void => {
    clearInterval(comments);
    stopListening();
  };
  out.once('close', () => {
    release();
    unread.abort('gone');
  });
  const end = (error?: Error): void => {
    release();
    if (error === undefined || unread.aborted) out.end();
    else out.destroy(error);
  };
  copy(mapAll(watch(unread), toText), out, unread).then(() => end(), end);
  return out;
}
