import { z } from 'zod';
import { EventPage } from '../../contracts/event.ts';
import { ListQuery } from '../../contracts/primitives.ts';
import type { Services } from '../../services/services.ts';
import { streamEvents } from '../event-stream.ts';
import { httpLimits } from '../limits.ts';
import { type Route, route } from '../route.ts';
import { RunPath } from './parameters.ts';

const Seq = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const EventQuery = z.strictObject({
  after: Seq.default(0).meta({
    description: 'The `seq` of the last event that is known. A cursor goes before it.',
  }),
  limit: z.coerce.number().int().min(1).max(200).default(200),
  cursor: ListQuery.shape.cursor,
});

function wantsStream(accept: string | undefined): boolean {
  return accept?.includes('text/event-stream') === true;
}

export function runEventRoutes({ runs }: Pick<Services, 'runs'>): Route[] {
  return [
    route({
      operation: 'list_run_events',
      method: 'GET',
      path: '/v1/runs/{id}/events',
      tag: 'runs',
      summary: "Read a run's log, as pages or as a stream",
      description:
        'JSON pages by default. With `Accept: text/event-stream` the log is sent as it grows and ends after the last event.',
      auth: 'key',
      scope: 'run:read',
      opens: 'stream',
      params: RunPath,
      query: EventQuery,
      headers: z.object({
        accept: z.string().max(1_000).optional(),
        'last-event-id': Seq.optional(),
      }),
      responses: { 200: { content: 'text/event-stream', schema: EventPage } },
      handle: async ({ caller, params, query, headers, signal }) => {
        const key = { project_id: caller.project_id, run_id: params.id };
        const isStream = wantsStream(headers.accept);
        if (!isStream) return { status: 200, body: await runs.events(key, query) };
        await runs.requireRun(key);
        const after = headers['last-event-id'] ?? query.after;
        return {
          status: 200,
          headers: { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' },
          body: () =>
            streamEvents((unread) => runs.watch(key, after, unread), {
              signal,
              commentMs: httpLimits.eventCommentMs,
            }),
        };
      },
    }),
  ];
}
