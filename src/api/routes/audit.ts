import { AuditList, AuditQuery } from '../../contracts/audit.ts';
import type { Services } from '../../services/services.ts';
import { type Route, route } from '../route.ts';

export function auditRoutes({ audit }: Pick<Services, 'audit'>): Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/audit',
      tag: 'access',
      summary:
        'Administrative acts in the project, newest first; `subject` is the id of what they were done to',
      auth: 'key',
      scope: 'admin',
      query: AuditQuery,
      responses: { 200: AuditList },
      handle: async ({ caller, query }) => ({ status: 200, body: await audit.list(caller, query) }),
    }),
  ];
}
