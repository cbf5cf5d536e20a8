/**
 * Sign-in at an OpenID provider. The browser returns from another site, so the answer redirects to the login page: its
 * own first request then sends the session's cookie, which is restricted to this site.
 */
import { text } from 'node:stream/consumers';
import { SignInOffer, type SignInRefusal } from '@capstan/core/contracts/sign-in';
import { AppError } from '@capstan/core/errors/app-error';
import { z } from 'zod';
import type { ServerCtx } from '../../context.ts';
import type { SignIn } from '../../parts/access/sign-in.ts';
import { beginSignIn, finishSignIn, offerOf, takeLogout } from '../../use-cases/access/sign-in.ts';
import { clearCookie, readCookie, sessionCookie, signInCookie, writeCookie } from '../authentication.ts';
import { byteStream } from '../input.ts';
import { type Route, route } from '../route.ts';

/** A logout token has a few hundred bytes. */
const logoutBytes = 65_536;
const loginPage = '/ui/login';

const Part = z.string().max(8_192).optional();
const Answer = z.looseObject({ code: Part, state: Part, error: Part, error_description: Part, iss: Part });

function leadTo(url: string, cookies: string[]) {
  const headers = { Location: url, 'Cache-Control': 'no-store', 'Set-Cookie': cookies };
  return { status: 302, headers } as const;
}

function leadBack(refused: SignInRefusal): string {
  return `${loginPage}?refused=${refused}`;
}

/** @throws AppError `not_found` */
function requireProvider({ signIn }: ServerCtx): SignIn {
  if (signIn !== null) return signIn;
  throw new AppError('not_found', 'no OpenID provider is configured here; sign in by a key');
}

function toQuery(answer: z.output<typeof Answer>): string {
  const texts = Object.entries(answer).filter(
    (pair): pair is [string, string] => typeof pair[1] === 'string',
  );
  return new URLSearchParams(texts).toString();
}

async function readForm({
  stream,
  contentType,
}: {
  stream: AsyncIterable<Uint8Array>;
  contentType: string;
}): Promise<URLSearchParams> {
  if (!contentType.startsWith('application/x-www-form-urlencoded')) return new URLSearchParams();
  let size = 0;
  const body = text(
    (async function* () {
      for await (const chunk of stream) {
        size += chunk.length;
        if (size > logoutBytes) throw new AppError('body_too_large', `more than ${logoutBytes} bytes`);
        yield chunk;
      }
    })(),
  );
  return new URLSearchParams(await body);
}

export const signInRoutes: readonly Route[] = [
  route('GET /v1/sign-in', {
    operation: 'get_sign_in',
    tag: 'session',
    summary: 'List the ways to sign a browser in without a key',
    scope: null,
    responses: { 200: SignInOffer },
    result: (ctx) => ({ oidc: ctx.signIn === null ? null : offerOf(ctx.signIn) }),
  }),
  route('GET /v1/sessions/oidc', {
    operation: 'begin_sign_in',
    tag: 'session',
    summary: 'Redirect the browser to the OpenID provider',
    scope: null,
    responses: { 302: 'empty' },
    errors: ['not_found'],
    handle: async (ctx) => {
      const begun = await beginSignIn(ctx, requireProvider(ctx));
      if ('refused' in begun) return leadTo(leadBack(begun.refused), [clearCookie(signInCookie, ctx.config)]);
      return leadTo(begun.url, [writeCookie(signInCookie, ctx.config, begun.kept)]);
    },
  }),
  route('GET /v1/sessions/oidc/callback', {
    operation: 'finish_sign_in',
    tag: 'session',
    summary: 'Accept the browser that returns from the OpenID provider',
    description:
      'The answer redirects to the login page of the console. If the sign-in failed, that page shows the reason.',
    scope: null,
    query: Answer,
    responses: { 302: 'empty' },
    errors: ['not_found', 'unavailable'],
    handle: async (ctx, { query, requestHeaders }) => {
      const answer = { query: toQuery(query), kept: readCookie(signInCookie, ctx.config, requestHeaders) };
      const opened = await finishSignIn(ctx, requireProvider(ctx), answer);
      const cleared = clearCookie(signInCookie, ctx.config);
      if ('refused' in opened) return leadTo(leadBack(opened.refused), [cleared]);
      return leadTo(`${loginPage}?signed_in=true`, [
        cleared,
        writeCookie(sessionCookie, ctx.config, opened.secret),
      ]);
    },
  }),
  route('POST /v1/sessions/oidc/logout', {
    operation: 'log_out_by_provider',
    tag: 'session',
    summary: 'Receive a back-channel logout from the OpenID provider',
    description:
      'The body is a form with a `logout_token` that the provider signed. The sessions that it names end everywhere within 5 seconds. The answer is 400 if the token is not from the provider, too old or already used.',
    scope: null,
    body: byteStream,
    responses: { 200: 'empty', 400: 'empty' },
    errors: ['not_found', 'body_too_large', 'unavailable'],
    handle: async (ctx, { body }) => {
      const signIn = requireProvider(ctx);
      const token = (await readForm(body)).get('logout_token');
      const isTaken = token !== null && (await takeLogout(ctx, signIn, token));
      return { status: isTaken ? 200 : 400, headers: { 'Cache-Control': 'no-store' } } as const;
    },
  }),
];
