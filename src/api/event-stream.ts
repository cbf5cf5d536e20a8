/**
 * Server-sent events of a run: `id` is the event's seq, so a client that comes back with `Last-Event-ID` misses
 * nothing; a comment every 15 s keeps proxies from closing a quiet stream; the stream ends after the last event.
 */
import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import type { RunEvent } from '../contracts/event.ts';
import { type CancelSignal, CancelSource, onCancel, toAbortSignal } from '../core/cancellation.ts';

function toFrame(event: RunEvent): string {
  return `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

async function copy(events: AsyncIterable<RunEvent>, out: PassThrough, signal: CancelSignal): Promise<void> {
  const stopped = toAbortSignal(signal);
  for await (const event of events) {
    if (!out.write(toFrame(event))) await once(out, 'drain', { signal: stopped });
    if (signal.aborted) return;
  }
}

/**
 * @param watch reads the events; its signal stops once nobody reads the stream any more
 * @param signal ends the stream early; a failing source cuts it off, so that the client comes back
 */
export function streamEvents(
  watch: (signal: CancelSignal) => AsyncIterable<RunEvent>,
  { signal, commentMs }: { signal: CancelSignal; commentMs: number },
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
  copy(watch(unread), out, unread).then(() => end(), end);
  return out;
}
