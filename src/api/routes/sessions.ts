/** Browser sessions: sign in, sign out, list, end. */
import { createRequire } from 'node:module';
import {
  BrowserSession,
  LoginLink,
  SessionClosed,
  SessionList,
  SessionQuery,
  SessionRequest,
  SessionRevocation,
  SessionsRevoked,
} from '@capstan/core/contracts/sign-in';
import { AppError } from '@capstan/core/errors/app-error';
import {
  closeSession,
  createLoginLink,
  describeSession,
  listSessionsOf,
  openSession,
  revokeSessions,
} from '../../use-cases/access/sessions.ts';
import { logoutUrlOf } from '../../use-cases/access/sign-in.ts';
import { clearCookie, readCookie, refuseForeignPage, sessionCookie, writeCookie } from '../authentication.ts';
import { json } from '../input.ts';
import { IdPath } from '../parameters.ts';
import { type Route, route } from '../route.ts';

/** The version of Capstan, from its package.json. */
const { version } = createRequire(import.meta.url)('capstan/package.json') as { version: string };

export const sessionRoutes: readonly Route[] = [
  route('POST /v1/session', {
    operation: 'open_session',
    tag: 'session',
    summary: 'Sign a browser in, by a key or the code of a login link',
    description:
      'The answer sets a cookie that acts as the key for 12 hours, or until the key expires. If the browser is signed in as another key, the answer without `replace` is 409. Its `present` and `link` name both identities, and the code stays valid. With the cookie, every method but GET and HEAD needs `X-Capstan-Console: 1` and must come from a page of this server.',
    scope: null,
    body: json(SessionRequest, 'small'),
    responses: { 204: 'empty' },
    errors: ['unauthenticated', 'csrf_refused', 'state_conflict', 'rate_limited', 'unavailable'],
    handle: async (ctx, { body, requestHeaders, sawWrongKey, opensSession, setHeader }) => {
      refuseForeignPage(requestHeaders, ctx.config.PUBLIC_URL);
      const present = readCookie(sessionCookie, ctx.config, requestHeaders);
      const secret = await openSession(ctx, body, { present, admit: opensSession });
      if (secret === null) {
        sawWrongKey();
        throw new AppError(
          'unauthenticated',
          body.code === undefined
            ? 'the key is unknown, expired or revoked'
            : 'the code is unknown, expired or was used; capstan login creates a new link',
        );
      }
      setHeader('Cache-Control', 'no-store');
      return { status: 204, headers: { 'Set-Cookie': writeCookie(sessionCookie, ctx.config, secret) } };
    },
  }),
  route('GET /v1/session', {
    operation: 'get_session',
    tag: 'session',
    summary: 'Show the calling key, its scopes and its projects',
    scope: 'any',
    responses: { 200: BrowserSession },
    result: async (ctx, { caller }) => ({
      ...(await describeSession(ctx, caller)),
      version,
      temporal_ui_url: ctx.config.TEMPORAL_UI_URL ?? null,
    }),
  }),
  route('DELETE /v1/session', {
    operation: 'close_session',
    tag: 'session',
    summary: 'Sign the browser out; its key stays',
    description: 'If the provider of the session supports logout, the answer is 200 with the address for it.',
    scope: 'any',
    responses: { 200: SessionClosed, 204: 'empty' },
    handle: async (ctx, { requestHeaders }) => {
      const secret = readCookie(sessionCookie, ctx.config, requestHeaders);
      const ended = secret === null ? null : await closeSession(ctx, secret);
      const tokens = ended?.tokens ?? null;
      const { signIn } = ctx;
      const url = tokens === null || signIn === null ? null : await logoutUrlOf(ctx, signIn, tokens);
      const headers = { 'Set-Cookie': clearCookie(sessionCookie, ctx.config) };
      return url === null ? { status: 204, headers } : { status: 200, headers, body: { provider_url: url } };
    },
  }),
  route('POST /v1/login-links', {
    operation: 'create_login_link',
    tag: 'session',
    summary: 'Create a link that signs a browser in as the calling key, once, within 10 minutes',
    scope: 'admin',
    responses: { 201: LoginLink },
    result: (ctx, { caller }) => createLoginLink(ctx, caller),
  }),
];

export const sessionAdminRoutes: readonly Route[] = [
  route('GET /v1/sessions', {
    operation: 'list_sessions',
    tag: 'session',
    summary: 'List the browsers that are signed in, newest first',
    description:
      'The list covers keys and people that share a project with the calling key. `user` is the id of a person or key, an e-mail address, or the subject at the provider.',
    scope: 'admin',
    query: SessionQuery,
    responses: { 200: SessionList },
    result: (ctx, { caller, query }) => listSessionsOf(ctx, caller, query),
  }),
  route('POST /v1/sessions/revoke', {
    operation: 'revoke_sessions',
    tag: 'session',
    summary: 'End all sessions of a user, everywhere within 5 seconds',
    description:
      'Open streams end too. The user can sign in again. To keep a person out, revoke the key that has the id of the person.',
    scope: 'admin',
    body: json(SessionRevocation),
    responses: { 200: SessionsRevoked },
    result: async (ctx, { caller, body }) => ({ revoked: await revokeSessions(ctx, caller, body) }),
  }),
  route('DELETE /v1/sessions/{id}', {
    operation: 'revoke_session',
    tag: 'session',
    summary: 'End a session, everywhere within 5 seconds',
    scope: 'admin',
    params: IdPath,
    responses: { 204: 'empty' },
    handle: async (ctx, { caller, params: { id } }) => {
      if ((await revokeSessions(ctx, caller, { sessionId: id })) === 0)
        throw new AppError('not_found', `no session ${id}`);
      return { status: 204 };
    },
  }),
];
