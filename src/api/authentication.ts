/**
 * Identifies the sender of a request: by a key in a header, or by the cookie of a signed-in browser, which only pages
 * of this server may use. Browsers state where a request comes from in `Sec-Fetch-Site`, which no script can set; older
 * browsers only in `Origin`.
 *
 * Streams, waits and long calls outlive the check of their key. The key is checked again, once for all open requests
 * that use it; requests of an invalid key are cut off.
 */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { sessionHours, signInMinutes } from '@capstan/core/contracts/limits';
import { AppError } from '@capstan/core/errors/app-error';
import type { Context } from 'koa';
import { requireScope, requireScopeOfSome, selectProject } from '../use-cases/access/caller.ts';
import { identify, type KeyCtx } from '../use-cases/access/identification.ts';
import { isSessionText } from '../use-cases/access/key-text.ts';
import type { ApiConfig, RateLimits } from './limits.ts';
import { type ApiContext, type Draining, isReading, valuesOf } from './middleware.ts';
import type { KeyRouteScope } from './route.ts';

function isHttps(publicUrl: string | undefined): boolean {
  return publicUrl?.startsWith('https:') === true;
}

// Cookies that scripts cannot read. If clients use https, according to `PUBLIC_URL`, the name has the prefix that makes
// browsers accept it from this host only. Koa's own cookies have no `Max-Age`, and no `Secure` behind a proxy that ends
// TLS.

interface Cookie {
  readonly plainName: string;
  readonly sameSite: 'Strict' | 'Lax';
  readonly seconds: number;
}

/** The cookie of a signed-in browser. Other sites cannot send it. */
export const sessionCookie: Cookie = {
  plainName: 'capstan_session',
  sameSite: 'Strict',
  seconds: sessionHours * 3_600,
};

/** The cookie that completes a sign-in at a provider. Lax: the browser returns from another site and must send it. */
export const signInCookie: Cookie = {
  plainName: 'capstan_sign_in',
  sameSite: 'Lax',
  seconds: signInMinutes * 60,
};

type UrlConfig = Pick<ApiConfig, 'PUBLIC_URL'>;

function nameOf({ plainName }: Cookie, { PUBLIC_URL }: UrlConfig): string {
  return isHttps(PUBLIC_URL) ? `__Host-${plainName}` : plainName;
}

/** Null when the request carries no such cookie. */
export function readCookie(
  cookie: Cookie,
  config: UrlConfig,
  { cookie: header = '' }: IncomingHttpHeaders,
): string | null {
  const start = `${nameOf(cookie, config)}=`;
  const found = header.split(';').find((part) => part.trimStart().startsWith(start));
  return found?.slice(found.indexOf('=') + 1).trim() || null;
}

/** @returns `Set-Cookie` */
export function writeCookie(cookie: Cookie, config: UrlConfig, value: string): string {
  const secure = isHttps(config.PUBLIC_URL) ? '; Secure' : '';
  const rules = `Path=/; HttpOnly; SameSite=${cookie.sameSite}${secure}`;
  return `${nameOf(cookie, config)}=${value}; ${rules}; Max-Age=${value === '' ? 0 : cookie.seconds}`;
}

/** @returns `Set-Cookie` that deletes the cookie */
export function clearCookie(cookie: Cookie, config: UrlConfig): string {
  return writeCookie(cookie, config, '');
}

function isOwnOrigin(origin: string, host: string | undefined, publicUrl: string | undefined): boolean {
  if (publicUrl !== undefined && origin === new URL(publicUrl).origin) return true;
  return !isHttps(publicUrl) && host !== undefined && origin === `http://${host}`;
}

/** Null: the request does not name its origin, like requests of clients other than browsers. */
function isFromOwnPage(headers: IncomingHttpHeaders, publicUrl: string | undefined): boolean | null {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin } = headers;
  return origin === undefined ? null : isOwnOrigin(origin, headers.host, publicUrl);
}

/** Guards writing requests that carry only a cookie. @throws AppError `csrf_refused` */
function requireOwnPage(headers: IncomingHttpHeaders, publicUrl: string | undefined): void {
  if (headers['x-capstan-console'] !== '1')
    throw new AppError(
      'csrf_refused',
      'a request with a session cookie needs X-Capstan-Console: 1; send that header, or a key',
    );
  if (isFromOwnPage(headers, publicUrl) !== true)
    throw new AppError('csrf_refused', 'the request does not come from a page of this server');
}

/**
 * Guards sign-in routes: refuses pages of other sites, accepts clients other than browsers.
 * @throws AppError `csrf_refused`
 */
export function refuseForeignPage(headers: IncomingHttpHeaders, publicUrl: string | undefined): void {
  if (isFromOwnPage(headers, publicUrl) === false)
    throw new AppError('csrf_refused', 'the request comes from a page of another server');
}

/** No page of another site can be behind it: a DNS name may lead here for a moment, an address cannot. */
function isFixedHost(host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(`http://${host}`)) return false;
  const { hostname } = new URL(`http://${host}`);
  return hostname === 'localhost' || isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
}

/**
 * Guards routes for programs, which a page could reach through the browser of a person near the server.
 * @throws AppError `origin_refused`
 */
export function refuseForeignOrigin(headers: IncomingHttpHeaders, publicUrl: string | undefined): void {
  const { origin, host } = headers;
  const own = isFixedHost(host) ? host : undefined;
  const isOwn = origin === undefined || isOwnOrigin(origin, own, publicUrl);
  if (isOwn && isFromOwnPage(headers, publicUrl) !== false) return;
  const allowed = [publicUrl && new URL(publicUrl).origin, own && `http://${own}`].filter(Boolean);
  const seen = origin ?? `a site that the browser calls ${headers['sec-fetch-site']}`;
  const may =
    allowed.length === 0
      ? 'no page may send it; set PUBLIC_URL'
      : `pages of ${allowed.join(' and ')} may send it`;
  throw new AppError('origin_refused', `the request comes from a page of ${seen}; ${may}`);
}

const bearer = /^Bearer +([!-~]+) *$/i;
const missing = 'Bearer realm="capstan"';
const invalid = 'Bearer realm="capstan", error="invalid_token"';

interface Gate {
  readonly server: KeyCtx & { readonly config: UrlConfig };
  readonly limits: RateLimits;
}

type Credential = { readonly kind: 'key' | 'session'; readonly text: string };

/**
 * Identifies the sender of a request and checks that it may call the route. A key in a header takes precedence over the
 * cookie of a signed-in browser. A cookie permits changes only from a page of this server.
 *
 * @param scope required scope of the key
 * @throws AppError `unauthenticated`, `csrf_refused`, `forbidden`, `rate_limited`
 */
export function createAuthentication({ server, limits }: Gate, scope: KeyRouteScope) {
  const { config } = server;
  return async (ctx: ApiContext): Promise<void> => {
    const credential = readCredential(ctx, config);
    const isSession = credential.kind === 'session';
    if (isSession && !isReading(ctx.req)) requireOwnPage(ctx.req.headers, config.PUBLIC_URL);
    const holder = isForm(credential) ? await identify(server, credential.text) : null;
    if (holder === null && isSession) {
      ctx.append('Set-Cookie', clearCookie(sessionCookie, config));
      throw refuse(ctx, invalid, 'the session is over: sign in again');
    }
    if (holder === null) {
      limits.sawWrongKey(ctx.req.socket.remoteAddress ?? '');
      throw refuse(ctx, invalid, 'the key is unknown, expired or revoked');
    }
    const { rate = 'request', opens = 'request', checksName = false } = ctx.state.route ?? {};
    limits.ask(rate, holder.key_id);
    limits.askKey(rate, holder);
    const leave = limits.enter(opens, holder.key_id);
    if (ctx.res.closed) leave();
    else ctx.state.leave = leave;
    const caller = selectProject(holder, requestedProject(ctx));
    if (scope !== 'any') (checksName ? requireScopeOfSome : requireScope)(caller, scope);
    ctx.state.caller = caller;
    ctx.state.key = credential.text;
    ctx.res.setHeader('Cache-Control', 'no-store');
  };
}

/** A session's secret is not accepted as a key, nor a key as a session. */
function isForm({ kind, text }: Credential): boolean {
  return isSessionText(text) === (kind === 'session');
}

/** @throws AppError `unauthenticated` */
function readCredential(ctx: Context, config: UrlConfig): Credential {
  const [key, ...others] = readKeys(ctx.req);
  if (others.length > 0) throw refuse(ctx, invalid, 'the request carries two different keys');
  if (key !== undefined) return { kind: 'key', text: key };
  const session = readCookie(sessionCookie, config, ctx.req.headers);
  if (session !== null) return { kind: 'session', text: session };
  throw refuse(ctx, missing, 'send a key as Authorization: Bearer <key> or as X-API-Key: <key>');
}

/** All different keys of a request. */
function readKeys(request: IncomingMessage): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const value of valuesOf(request, 'authorization')) keys.add(bearer.exec(value)?.[1] ?? '');
  for (const value of valuesOf(request, 'x-api-key')) keys.add(value.trim());
  return keys;
}

/**
 * The project named by the header or, for reads, by the query: a browser sends no custom headers for streams and
 * images.
 *
 * @throws AppError `request_invalid` when the two differ
 */
function requestedProject(ctx: Context): string | undefined {
  const named = [
    ...valuesOf(ctx.req, 'x-project-id'),
    ...(isReading(ctx.req) ? new URLSearchParams(ctx.querystring).getAll('project_id') : []),
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

/** Interval between checks: shorter than the time within which a revoked key stops working. */
const recheckMs = 2_000;

/** Cuts off requests of revoked keys; ends when the server is closing and all requests have ended. */
export function watchRevocations(
  { open, closing }: Pick<Draining, 'open' | 'closing'>,
  isValid: (key: string) => Promise<boolean>,
): void {
  let isLooking = false;
  const timer = setInterval(() => {
    if (closing.aborted && open.size === 0) clearInterval(timer);
    if (isLooking || open.size === 0) return;
    isLooking = true;
    cutRevoked(open, isValid)
      .catch(() => undefined) // a failed check is repeated at the next interval
      .finally(() => {
        isLooking = false;
      });
  }, recheckMs).unref();
}

async function cutRevoked(open: Draining['open'], isValid: (key: string) => Promise<boolean>): Promise<void> {
  const keys = new Set(open.members().map(({ state }) => state.key));
  for (const key of keys) {
    if (key === undefined || (await isValid(key))) continue;
    for (const { res, state } of open.members()) if (state.key === key) res.destroy();
  }
}
