import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { AppError } from '../../errors/app-error.ts';
import type { AccessService } from '../../services/access/access-service.ts';
import { requireScope, selectProject } from '../../services/access/caller.ts';
import { isSessionText } from '../../services/access/sessions.ts';
import type { ApiConfig } from '../limits.ts';
import type { RateLimits } from '../rate-limits.ts';
import type { KeyRouteScope } from '../route.ts';
import { requireOwnPage } from '../same-origin.ts';
import { createSessionCookie } from '../session-cookie.ts';
import { type ApiMiddleware, valuesOf } from './request-state.ts';

const bearer = /^Bearer +([!-~]+) *$/i;
const missing = 'Bearer realm="capstan"';
const invalid = 'Bearer realm="capstan", error="invalid_token"';

export interface Gate {
  readonly access: Pick<AccessService, 'identify'>;
  readonly config: ApiConfig;
  readonly limits: RateLimits;
}

type Credential = { readonly kind: 'key' | 'session'; readonly text: string };

/**
 * Finds out who sends a request, and whether the route is theirs to call. A key in a header goes before the cookie of a
 * signed-in browser, which changes something only from a page of this server.
 *
 * @param scope what the key must be allowed
 * @throws AppError `unauthenticated`, `csrf_refused`, `forbidden`, `rate_limited`
 */
export function authenticate({ access, config, limits }: Gate, scope: KeyRouteScope): ApiMiddleware {
  const cookie = createSessionCookie(config.PUBLIC_URL);
  return async (ctx, next) => {
    const credential = readCredential(ctx, cookie.read(ctx.req.headers.cookie));
    const isSession = credential.kind === 'session';
    if (isSession && !isReading(ctx)) requireOwnPage(ctx.req.headers, config.PUBLIC_URL);
    const holder = isForm(credential) ? await access.identify(credential.text) : null;
    if (holder === null && isSession) {
      ctx.append('Set-Cookie', cookie.clear);
      throw refuse(ctx, invalid, 'the session is over: sign in again');
    }
    if (holder === null) {
      limits.sawWrongKey(ctx.req.socket.remoteAddress ?? '');
      throw refuse(ctx, invalid, 'the key is unknown, expired or revoked');
    }
    const { rate = 'request', opens = 'request' } = ctx.state.route ?? {};
    limits.ask(rate, holder.key_id);
    whenOver(ctx.res, limits.enter(opens, holder.key_id));
    const caller = selectProject(holder, requestedProject(ctx));
    if (scope !== 'any') requireScope(caller, scope);
    ctx.state.caller = caller;
    ctx.state.key = credential.text;
    ctx.set('Cache-Control', 'no-store');
    return next();
  };
}

function whenOver(response: ServerResponse, leave: () => void): void {
  if (response.closed) leave();
  else response.once('close', leave);
}

function isReading({ method }: Context): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The secret of a session is no key, and the other way round. */
function isForm({ kind, text }: Credential): boolean {
  return isSessionText(text) === (kind === 'session');
}

/** @throws AppError `unauthenticated` */
function readCredential(ctx: Context, session: string | null): Credential {
  const [key, ...others] = readKeys(ctx.req);
  if (others.length > 0) throw refuse(ctx, invalid, 'the request carries two different keys');
  if (key !== undefined) return { kind: 'key', text: key };
  if (session !== null) return { kind: 'session', text: session };
  throw refuse(ctx, missing, 'send a key as Authorization: Bearer <key> or as X-API-Key: <key>');
}

/** All keys of a request. */
function readKeys(request: IncomingMessage): ReadonlySet<string> {
  return new Set([
    ...valuesOf(request, 'authorization').map((value) => bearer.exec(value)?.[1] ?? ''),
    ...valuesOf(request, 'x-api-key').map((value) => value.trim()),
  ]);
}

/**
 * Of the header, or of the address when something is read: a browser sends no headers of its own for streams and images.
 *
 * @throws AppError `request_invalid` when the two differ
 */
function requestedProject(ctx: Context): string | undefined {
  const named = [
    ...valuesOf(ctx.req, 'x-project-id'),
    ...(isReading(ctx) ? new URLSearchParams(ctx.querystring).getAll('project_id') : []),
  ];
  const [project, ...others] = new Set(named);
  if (others.length === 0) return project;
  if (valuesOf(ctx.req, 'x-project-id').length === named.length) return named.join(', ');
  throw new AppError('request_invalid', 'project_id of the address and X-Project-ID name different projects');
}

function refuse(ctx: Context, challenge: string, message: string): AppError {
  ctx.set('WWW-Authenticate', challenge);
  return new AppError('unauthenticated', message);
}
