import { CacheList, CacheQuery, CacheRemoval, CacheRemoved } from '../../contracts/cache.ts';
import type { Services } from '../../services/services.ts';
import { type Route, route } from '../route.ts';

export function cacheRoutes({ cache }: Pick<Services, 'cache'>): Route[] {
  return [
    route({
      operation: 'list_cached',
      method: 'GET',
      path: '/v1/cache',
      tag: 'runs',
      summary: 'List results that equal calls of steps with `cache` take, newest first',
      auth: 'key',
      scope: 'run:read',
      query: CacheQuery,
      responses: { 200: CacheList },
      handle: async ({ caller, query }) => ({ status: 200, body: await cache.list(caller, query) }),
    }),
    route({
      operation: 'forget_cached',
      method: 'DELETE',
      path: '/v1/cache',
      tag: 'runs',
      summary:
        'Keep such results no longer: one, those of a capability, pipeline or run, or all of the project',
      description: 'Steps that took one keep it, and files stay.',
      auth: 'key',
      scope: 'run:write',
      query: CacheRemoval,
      responses: { 200: CacheRemoved },
      handle: async ({ caller, query }) => ({ status: 200, body: await cache.remove(caller, query) }),
    }),
  ];
}
