import { Readable } from 'node:stream';
import { z } from 'zod';
import { AuditList, AuditQuery } from '../../contracts/audit.ts';
import { toAbortSignal } from '../../core/cancellation.ts';
import type { Services } from '../../services/services.ts';
import { type Route, route } from '../route.ts';

const lines = 'application/x-ndjson';

export function auditRoutes({ audit }: Pick<Services, 'audit'>): Route[] {
  return [
    route({
      operation: 'list_audit',
      method: 'GET',
      path: '/v1/audit',
      tag: 'access',
      summary:
        'Administrative acts in the project, newest first; `subject` is the id of what they were done to',
      description:
        'JSON pages by default. With `Accept: application/x-ndjson` everything that matches, oldest first, an entry a line, as one stream; one that is cut off breaks the connection.',
      auth: 'key',
      scope: 'admin',
      opens: 'history',
      query: AuditQuery,
      headers: z.object({ accept: z.string().max(1_000).optional() }),
      responses: { 200: { content: lines, schema: AuditList } },
      handle: async ({ caller, query, headers, signal }) => {
        if (headers.accept?.includes(lines) !== true)
          return { status: 200, body: await audit.list(caller, query) };
        return {
          status: 200,
          headers: { 'Content-Type': lines, 'Content-Disposition': 'attachment; filename="audit.ndjson"' },
          body: () =>
            Readable.from(audit.export(caller, query), { objectMode: false, signal: toAbortSignal(signal) }),
        };
      },
    }),
  ];
}
