/** Who is calling, with which project, and whether the route is theirs to call. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { Scope } from '../../contracts/access.ts';
import { AppError } from '../../errors.ts';
import type { AccessService } from '../../services/access/access-service.ts';
import { requireScope, selectProject } from '../../services/access/caller.ts';
import type { ApiMiddleware } from './request-state.ts';

const bearer = /^Bearer +([!-~]+) *$/i;

/** All keys of a request; a header sent twice counts twice. */
const readKeys = ({ headersDistinct }: IncomingMessage): ReadonlySet<string> =>
  new Set([
    ...(headersDistinct.authorization ?? []).map((value) => bearer.exec(value)?.[1] ?? ''),
    ...(headersDistinct['x-api-key'] ?? []).map((value) => value.trim()),
  ]);

const refuse = (ctx: Context, message: string, challenge: string): AppError => {
  ctx.set('WWW-Authenticate', challenge);
  return new AppError('unauthenticated', message);
};

const missing = 'Bearer realm="capstan"';
const invalid = 'Bearer realm="capstan", error="invalid_token"';

/** @param scope what the key must be allowed */
export const authenticate =
  (access: AccessService, scope: Scope): ApiMiddleware =>
  async (ctx, next) => {
    const [key, ...others] = readKeys(ctx.req);
    if (key === undefined)
      throw refuse(ctx, 'send a key as Authorization: Bearer <key> or as X-API-Key: <key>', missing);
    if (others.length > 0) throw refuse(ctx, 'the request carries two different keys', invalid);
    const holder = await access.identify(key);
    if (holder === null) throw refuse(ctx, 'the key is unknown, expired or revoked', invalid);
    ctx.state.caller = selectProject(holder, ctx.req.headersDistinct['x-project-id']?.join(', '));
    requireScope(holder, scope);
    await next();
  };
