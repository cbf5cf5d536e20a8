/** A project as it goes on. */
import { z } from 'zod';
import { StreamTopic } from '../../contracts/stream.ts';
import type { Services } from '../../services/services.ts';
import type { StreamBatch } from '../../services/stream/stream-view.ts';
import { streamText } from '../event-stream.ts';
import { httpLimits } from '../limits.ts';
import { type Route, route } from '../route.ts';

const mostRuns = 50;

const Topics = z
  .string()
  .max(200)
  .default(StreamTopic.options.join(','))
  .transform((text) => text.split(',').filter((part) => part !== ''))
  .pipe(z.array(StreamTopic))
  .meta({
    override: { type: 'string', description: 'Some of runs, reviews, instances, budgets, with commas.' },
  });

const RunIds = z
  .union([z.string().max(128), z.array(z.string().max(128)).max(mostRuns)])
  .default([])
  .transform((ids) => [ids].flat())
  .meta({
    override: { type: 'array', items: { type: 'string' }, description: 'Whose every event is wanted.' },
  });

const Position = z.string().max(60).optional();

/** An id stands at the last frame of a batch: who has had a part of it gets all of it again. */
function toText({ id, frames }: StreamBatch): string {
  const lines = frames.map(({ kind, data }, index) => {
    const end = index === frames.length - 1 ? `id: ${id}\n` : '';
    return `${end}event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`;
  });
  return frames.length === 0 ? `id: ${id}\n\n` : lines.join('');
}

export function streamRoutes({ streams }: Pick<Services, 'streams'>): Route[] {
  return [
    route({
      operation: 'follow_project',
      method: 'GET',
      path: '/v1/stream',
      tag: 'service',
      summary: 'Follow a project: how runs, reviews, instances and budgets stand, as it changes',
      description:
        'Server-sent events `run`, `review`, `instance` and `budget`, each object at most four times a second; `step`: every event of the runs `run_id`; `reset`: something may have been missed, so read again. Its `id`, sent back as `Last-Event-ID` or `after` within an hour, also with other topics, goes on from there. Topics that the key may not read (`run:read`, `capability:read`, `cost:read`) are left out.',
      auth: 'key',
      scope: 'any',
      opens: 'stream',
      query: z.strictObject({ topics: Topics, run_id: RunIds, after: Position }),
      headers: z.object({ 'last-event-id': Position }),
      responses: { 200: { content: 'text/event-stream' } },
      errors: ['not_found'],
      handle: async ({ caller, query, headers, signal }) => {
        const { topics, run_id: runIds } = query;
        const after = headers['last-event-id'] || query.after;
        const watch = await streams.open(caller, { topics, runIds, after });
        return {
          status: 200,
          headers: { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' },
          body: () => streamText(watch, toText, { signal, commentMs: httpLimits.eventCommentMs }),
        };
      },
    }),
  ];
}
