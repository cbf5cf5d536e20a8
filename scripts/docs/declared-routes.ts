import type { Route } from '../../src/api/route.ts';
import { createRoutes } from '../../src/api/routes.ts';
import { ConfigSchema } from '../../src/config.ts';

export function declaredRoutes(): readonly Route[] {
  return createRoutes(ConfigSchema.parse({ DATABASE_URL: 'postgres://none' }));
}
