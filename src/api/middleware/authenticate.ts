import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { Scope } from '../../contracts/access.ts';
import { AppError } from '../../errors/app-error.ts';
import type { AccessService } from '../../services/access/access-service.ts';
import { requireScope, selectProject } from '../../services/access/caller.ts';
import type { RateLimits } from '../rate-limits.ts';
import { type ApiMiddleware, valuesOf } from './request-state.ts';

const bearer = /^Bearer +([!-~]+) *$/i;
const missing = 'Bearer realm="capstan"';
const invalid = 'Bearer realm="capstan", error="invalid_token"';

/**
 * Finds out who sends a request, and whether the route is theirs to call.
 *
 * @param scope what the key must be allowed
 * @throws AppError `unauthenticated`, `forbidden`, `rate_limited`
 */
export function authenticate(access: AccessService, limits: RateLimits, scope: Scope): ApiMiddleware {
  return async (ctx, next) => {
    const [key, ...others] = readKeys(ctx.req);
    if (key === undefined)
      throw refuse(ctx, missing, 'send a key as Authorization: Bearer <key> or as X-API-Key: <key>');
    if (others.length > 0) throw refuse(ctx, invalid, 'the request carries two different keys');
    const holder = await access.identify(key);
    if (holder === null) {
      limits.sawWrongKey(ctx.req.socket.remoteAddress ?? '');
      throw refuse(ctx, invalid, 'the key is unknown, expired or revoked');
    }
    limits.ask(ctx.state.route?.rate ?? 'request', holder.key_id);
    const projects = valuesOf(ctx.req, 'x-project-id');
    const caller = selectProject(holder, projects.length > 0 ? projects.join(', ') : undefined);
    requireScope(holder, scope);
    ctx.state.caller = caller;
    ctx.state.key = key;
    ctx.set('Cache-Control', 'no-store');
    return next();
  };
}

/** All keys of a request. */
function readKeys(request: IncomingMessage): ReadonlySet<string> {
  return new Set([
    ...valuesOf(request, 'authorization').map((value) => bearer.exec(value)?.[1] ?? ''),
    ...valuesOf(request, 'x-api-key').map((value) => value.trim()),
  ]);
}

function refuse(ctx: Context, challenge: string, message: string): AppError {
  ctx.set('WWW-Authenticate', challenge);
  return new AppError('unauthenticated', message);
}
