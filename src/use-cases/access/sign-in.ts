/**
 * Sign-in with an OpenID provider. I1: the browser that began a sign-in completes it, once, within 10 minutes: its
 * proof is sealed in a cookie of that browser, and one sign-in opens at most one session. I2: the tokens for later
 * checks with the provider are stored sealed, by a key derived from the client's secret. I3: a session with such a
 * token lasts only while the provider renews it; a provider that does not answer ends no session.
 *
 * The provider is configured by all of its settings or none.
 */
import { hash } from 'node:crypto';
import { signInMinutes } from '@capstan/core/contracts/limits';
import type { SignInOffer, SignInRefused } from '@capstan/core/contracts/sign-in';
import type { LogoutNotice } from '../../clients/openid-claims.ts';
import type { Ctx, ServerCtx } from '../../context.ts';
import { endSessionsAtProvider } from '../../db/access/session.ts';
import type { Db } from '../../db/connect.ts';
import type { Begun, SignIn } from '../../parts/access/sign-in.ts';
import { auditIn } from './person-rights.ts';
import { openPersonSession } from './person-session.ts';

const signInPath = '/v1/sessions/oidc';

function readProof(begun: Begun | null, answer: URL): Begun | SignInRefused {
  if (begun === null) return { refused: 'mismatch', detail: 'no sign-in was begun in this browser' };
  if (begun.until < Date.now()) return { refused: 'expired', detail: 'it took longer than allowed' };
  if (answer.searchParams.get('state') === begun.state) return begun;
  return { refused: 'mismatch', detail: 'the answer belongs to another sign-in' };
}

function endByNotice(db: Db, notice: LogoutNotice): Promise<void> {
  return db.transaction(async (trx) => {
    for (const { key_id, session_id, projects } of await endSessionsAtProvider(trx, notice))
      await auditIn(trx, projects, {
        actor: 'sign-in',
        action: 'session.ended',
        subject: key_id,
        data: { session_id, reason: 'the provider has signed out' },
      });
  });
}

export function offerOf({ name }: SignIn): SignInOffer['oidc'] {
  return { name, url: signInPath };
}

function redirectUri({ publicUrl }: Pick<ServerCtx, 'publicUrl'>): string {
  return new URL(`${signInPath}/callback`, publicUrl()).href;
}

function refuseSignIn({ logger }: Pick<Ctx, 'logger'>, { refused, detail }: SignInRefused): SignInRefused {
  logger.warn({ reason: refused, detail: detail.slice(0, 500) }, 'sign-in refused');
  return { refused, detail };
}

/** @returns the browser's redirect, and its sealed state for the way back */
export async function beginSignIn(
  ctx: Pick<ServerCtx, 'publicUrl' | 'logger'>,
  { provider, proofs }: SignIn,
): Promise<{ readonly url: string; readonly kept: string } | SignInRefused> {
  const begun = await provider.begin(redirectUri(ctx));
  if ('refused' in begun) return refuseSignIn(ctx, begun);
  const until = Date.now() + signInMinutes * 60_000;
  return { url: begun.url, kept: proofs.write({ ...begun.proof, until }).toString('base64url') };
}

/**
 * @param arguments: the query of the callback address, and the browser's sealed state. @returns the secret of the new
 * session
 */
export async function finishSignIn(
  ctx: Pick<ServerCtx, 'db' | 'publicUrl' | 'logger'>,
  { provider, rules, proofs, tokens }: SignIn,
  { query, kept }: { readonly query: string; readonly kept: string | null },
): Promise<{ readonly secret: string } | SignInRefused> {
  const answer = new URL(`${redirectUri(ctx)}?${query}`);
  const begun = kept === null ? null : proofs.read(Buffer.from(kept, 'base64url'));
  const proof = readProof(begun, answer);
  if ('refused' in proof) return refuseSignIn(ctx, proof);
  const identity = await provider.finish(answer, proof);
  if ('refused' in identity) return refuseSignIn(ctx, identity);
  const { idToken, refreshToken } = identity;
  const opened = await openPersonSession(ctx, {
    identity,
    rules,
    signIn: hash('sha256', proof.state, 'buffer'),
    tokens: tokens.write({ idToken, refreshToken }),
  });
  return 'refused' in opened ? refuseSignIn(ctx, opened) : opened;
}

/** Ends sessions by the provider's logout token. False when the token is invalid. @throws AppError `unavailable` */
export function takeLogout(
  { db }: Pick<Ctx, 'db'>,
  { provider }: Pick<SignIn, 'provider'>,
  token: string,
): Promise<boolean> {
  return provider.takeLogout(token, (notice) => endByNotice(db, notice));
}

/** The address where the browser signs out from the provider too. @param sealed tokens of the ended session */
export async function logoutUrlOf(
  { publicUrl }: Pick<ServerCtx, 'publicUrl'>,
  { provider, tokens }: SignIn,
  sealed: Buffer,
): Promise<string | null> {
  const kept = tokens.read(sealed);
  return kept === null ? null : provider.logoutUrl(kept.idToken, new URL('/ui/login', publicUrl()).href);
}
