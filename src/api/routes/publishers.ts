import { Publisher, PublisherList, PublisherRequest } from '../../contracts/capability.ts';
import { ListQuery } from '../../contracts/primitives.ts';
import type { Services } from '../../services/services.ts';
import { json } from '../body-kind.ts';
import { type Route, route } from '../route.ts';
import { CapabilityPath } from './parameters.ts';

export function publisherRoutes({ publishers }: Pick<Services, 'publishers'>): Route[] {
  return [
    route({
      operation: 'list_publishers',
      method: 'GET',
      path: '/v1/publishers',
      tag: 'capabilities',
      summary: 'List which projects register instances under which names',
      auth: 'key',
      scope: 'operator',
      query: ListQuery.strict(),
      responses: { 200: PublisherList },
      handle: async ({ query }) => ({ status: 200, body: await publishers.list(query) }),
    }),
    route({
      operation: 'set_publisher',
      method: 'PUT',
      path: '/v1/publishers/{name}',
      tag: 'capabilities',
      summary: 'Say which projects register instances under a name; what others have there is deregistered',
      description: 'Without it, the project that registers a name first is the one that may.',
      auth: 'key',
      scope: 'operator',
      params: CapabilityPath,
      body: json(PublisherRequest),
      responses: { 200: Publisher },
      handle: async ({ caller, params, body }) => ({
        status: 200,
        body: await publishers.publish(caller, params.name, body.projects),
      }),
    }),
  ];
}
