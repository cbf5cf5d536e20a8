/**
 * Signing in at an OpenID provider. I1: a sign-in is ended by the browser that began it, within 10 minutes, once: what
 * proves it is sealed in a cookie of that browser, and a session is opened by one sign-in at most. I2: what the provider
 * gave to ask it again is kept sealed, by a key that comes out of the client's secret. I3: a session goes on only while
 * the provider renews it, where it gave something to ask with; a provider that does not answer ends nobody's.
 */
import { hash } from 'node:crypto';
import type { Logger } from 'pino';
import type { LogoutNotice } from '../../clients/oidc/logout-token.ts';
import type { OpenIdProvider, SignInProof } from '../../clients/oidc/openid-provider.ts';
import { signInMinutes } from '../../contracts/bounds.ts';
import type { GroupRules, SignInOffer, SignInRefused } from '../../contracts/sign-in.ts';
import { endSessionsAtProvider } from '../../db/access/session-list.ts';
import type { Db } from '../../db/connect.ts';
import { auditIn } from './person-rights.ts';
import { openPersonSession } from './person-session.ts';
import { createPersonChecks } from './recheck-persons.ts';
import { createSealed, type KeptTokens, type Sealed } from './sealed.ts';

export interface SignInDependencies {
  readonly db: Db;
  readonly provider: OpenIdProvider;
  readonly rules: GroupRules;
  /** Shown on the button. */
  readonly name: string;
  readonly clientSecret: string;
  readonly publicUrl: () => string;
  /** How long a session goes on without asking the provider. */
  readonly recheckS: number;
  readonly logger: Logger;
}

const signInPath = '/v1/sessions/oidc';

interface Begun extends SignInProof {
  readonly until: number;
}

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

/** There and back: what the browser keeps meanwhile is sealed. */
function createPassing(dependencies: SignInDependencies, tokens: Sealed<KeptTokens>) {
  const { db, provider, rules, clientSecret, publicUrl, logger } = dependencies;
  const proofs = createSealed<Begun>(clientSecret, 'capstan sign-in');
  const redirectUri = (): string => new URL(`${signInPath}/callback`, publicUrl()).href;
  const refuse = ({ refused, detail }: SignInRefused): SignInRefused => {
    logger.warn({ reason: refused, detail: detail.slice(0, 500) }, 'sign-in refused');
    return { refused, detail };
  };
  return {
    /** @returns where the browser goes, and what it keeps until it comes back */
    begin: async (): Promise<{ readonly url: string; readonly kept: string } | SignInRefused> => {
      const begun = await provider.begin(redirectUri());
      if ('refused' in begun) return refuse(begun);
      const until = Date.now() + signInMinutes * 60_000;
      return { url: begun.url, kept: proofs.write({ ...begun.proof, until }).toString('base64url') };
    },

    /** @param query of the address at which the browser came back. @returns the secret of the new session */
    finish: async (
      query: string,
      kept: string | null,
    ): Promise<{ readonly secret: string } | SignInRefused> => {
      const answer = new URL(`${redirectUri()}?${query}`);
      const begun = kept === null ? null : proofs.read(Buffer.from(kept, 'base64url'));
      const proof = readProof(begun, answer);
      if ('refused' in proof) return refuse(proof);
      const identity = await provider.finish(answer, proof);
      if ('refused' in identity) return refuse(identity);
      const { idToken, refreshToken } = identity;
      const opened = await openPersonSession(db, {
        identity,
        rules,
        signIn: hash('sha256', proof.state, 'buffer'),
        tokens: tokens.write({ idToken, refreshToken }),
      });
      return 'refused' in opened ? refuse(opened) : opened;
    },
  };
}

export function createSignInService(dependencies: SignInDependencies) {
  const { db, provider, clientSecret, publicUrl } = dependencies;
  const tokens = createSealed<KeptTokens>(clientSecret, 'capstan tokens');
  const checks = createPersonChecks({ ...dependencies, tokens });

  return {
    offer: { name: dependencies.name, url: signInPath } satisfies SignInOffer['oidc'],

    ...createPassing(dependencies, tokens),

    /** By a logout token of the provider. False when it is none. @throws AppError `unavailable` */
    logout: (token: string): Promise<boolean> =>
      provider.takeLogout(token, (notice) => endByNotice(db, notice)),

    /** Where the browser signs out of the provider too. @param sealed what was kept of the ended session's tokens */
    logoutUrl: async (sealed: Buffer): Promise<string | null> => {
      const kept = tokens.read(sealed);
      return kept === null ? null : provider.logoutUrl(kept.idToken, new URL('/ui/login', publicUrl()).href);
    },

    /** Begins to ask the provider about sessions that are due; it does not wait for the answers. */
    recheck: checks.begin,
    close: checks.settled,
  };
}

export type SignInService = ReturnType<typeof createSignInService>;
