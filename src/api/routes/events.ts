/**
 * The events of a run, and the stream of a project, as server-sent events.
 *
 * In a run's stream, `id` is the event's seq, so a client that reconnects with `Last-Event-ID` misses nothing. A
 * comment every 15 s keeps proxies from closing a quiet stream. The stream ends after the last event.
 */
import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { type CancelSignal, CancelSource, onCancel, toAbortSignal } from '@capstan/core/cancellation';
import { EventPage, EventQuery, type RunEvent, Seq, StreamQuery } from '@capstan/core/contracts/event';
import { writeJson } from '@capstan/core/json/text';
import { z } from 'zod';
import { listRunEvents, requireRun, watchRun } from '../../use-cases/runs/run-reading.ts';
import { openStream, type StreamBatch } from '../../use-cases/stream/stream.ts';
import { eventStreamHeaders } from '../answer.ts';
import { httpLimits } from '../limits.ts';
import { IdPath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

function toFrame(event: RunEvent): string {
  return `id: ${event.seq}\nevent: ${event.type}\ndata: ${writeJson(event)}\n\n`;
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
  /** Ends the stream early. A failing source breaks the connection, so that the client reconnects. */
  readonly signal: CancelSignal;
  readonly commentMs: number;
}

/** @param watch reads the events; its signal aborts when the stream has no reader any more */
export function streamEvents(
  watch: (signal: CancelSignal) => AsyncIterable<RunEvent>,
  options: EventStreamOptions,
): Readable {
  return streamText(watch, toFrame, options);
}

/** Streams any values as events. */
function streamText<Value>(
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

function wantsStream(accept: string | undefined): boolean {
  return accept?.includes('text/event-stream') === true;
}

/** Only the last frame of a batch has an id: a client that received a part of a batch gets the whole batch again. */
function toText({ id, frames }: StreamBatch): string {
  const lines = frames.map(({ kind, data }, index) => {
    const end = index === frames.length - 1 ? `id: ${id}\n` : '';
    return `${end}event: ${kind}\ndata: ${writeJson(data)}\n\n`;
  });
  return frames.length === 0 ? `id: ${id}\n\n` : lines.join('');
}

export const runEventRoutes: readonly Route[] = [
  route('GET /v1/runs/{id}/events', {
    operation: 'list_run_events',
    tag: 'runs',
    summary: "Read a run's log, as pages or as a stream",
    description:
      'The answer is JSON pages by default. With `Accept: text/event-stream` it is a stream that ends after the last event.',
    scope: 'run:read',
    opens: 'stream',
    params: IdPath,
    query: EventQuery,
    headers: z.object({ accept: z.string().max(1_000).optional(), 'last-event-id': Seq.optional() }),
    responses: { 200: { content: 'text/event-stream', schema: EventPage } },
    handle: async (ctx, { caller, params, query, headers, signal }) => {
      const key = { project_id: caller.project_id, run_id: params.id };
      const isStream = wantsStream(headers.accept);
      if (!isStream) return { status: 200, body: await listRunEvents(ctx, key, query) };
      await requireRun(ctx, key);
      const after = headers['last-event-id'] ?? query.after;
      return {
        status: 200,
        headers: eventStreamHeaders,
        body: () =>
          streamEvents((unread) => watchRun(ctx, key, { after, signal: unread }), {
            signal,
            commentMs: httpLimits.eventCommentMs,
          }),
      };
    },
  }),
];

export const streamRoutes: readonly Route[] = [
  route('GET /v1/stream', {
    operation: 'follow_project',
    tag: 'service',
    summary: 'Follow the runs, reviews, instances and budgets of a project as they change',
    description:
      'The stream sends `run`, `review`, `instance` and `budget`, each object at most four times a second. `step` carries every event of the runs in `run_id`. `reset` means that you may have missed events: read the objects again. To continue within an hour, send the last `id` as `Last-Event-ID` or `after`; the topics may differ. The stream omits topics that the key may not read (`run:read`, `capability:read`, `cost:read`).',
    scope: 'any',
    opens: 'stream',
    query: StreamQuery,
    headers: z.object({ 'last-event-id': StreamQuery.shape.after }),
    responses: { 200: { content: 'text/event-stream' } },
    errors: ['not_found'],
    handle: async (ctx, { caller, query, headers, signal }) => {
      const after = headers['last-event-id'] || query.after;
      const watch = await openStream(ctx, caller, { ...query, after });
      return {
        status: 200,
        headers: eventStreamHeaders,
        body: () => streamText(watch, toText, { signal, commentMs: httpLimits.eventCommentMs }),
      };
    },
  }),
];
