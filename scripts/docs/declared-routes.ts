import type { Route } from '../../src/api/route.ts';
import { createRoutes } from '../../src/api/routes.ts';
import { ConfigSchema } from '../../src/config.ts';
import type { ServerCtx } from '../../src/services/context.ts';

/** Routes hold their services and use them only when called, which nobody does here. */
export function declaredRoutes(): readonly Route[] {
  return createRoutes({} as ServerCtx, {
    config: ConfigSchema.parse({ DATABASE_URL: 'postgres://none' }),
    closing: new AbortController().signal,
  });
}
