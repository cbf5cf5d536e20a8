/** Logout tokens (OpenID Connect Back-Channel Logout 1.0, §2.6): signed by the provider, for us, and used once. */
import { LRUCache } from 'lru-cache';

const event = 'http://schemas.openid.net/event/backchannel-logout';
/** Signatures alone: a secret that both sides know proves nothing about who wrote it. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
const maxAgeS = 300;

/** Whom it ends: the sign-in of that name, or all of the subject. At least one is told. */
export interface LogoutNotice {
  readonly issuer: string;
  readonly subject: string | null;
  readonly sid: string | null;
}

interface Sender {
  readonly issuer: string;
  readonly keysAt: string;
}

type Keys = ReturnType<typeof import('jose')['createRemoteJWKSet']>;

export function createLogoutTokens(clientId: string) {
  const seen = new LRUCache<string, true>({ max: 10_000, ttl: 2 * maxAgeS * 1_000 });
  let keys: Keys | null = null;
  return {
    /** Null when it is not what it should be. */
    read: async (token: string, { issuer, keysAt }: Sender): Promise<LogoutNotice | null> => {
      const { createRemoteJWKSet, jwtVerify } = await import('jose');
      keys ??= createRemoteJWKSet(new URL(keysAt), { timeoutDuration: 5_000 });
      const verified = await jwtVerify(token, keys, {
        issuer,
        audience: clientId,
        algorithms,
        maxTokenAge: maxAgeS,
        clockTolerance: 30,
      }).catch(() => null);
      if (verified === null) return null;
      const { payload } = verified;
      const events = payload.events as Readonly<Record<string, unknown>> | undefined;
      if (events?.[event] === undefined || 'nonce' in payload) return null;
      const { jti, sub: subject = null, sid } = payload;
      const known = typeof sid === 'string' ? sid : null;
      if (jti === undefined || seen.has(jti) || (subject === null && known === null)) return null;
      seen.set(jti, true);
      return { issuer, subject, sid: known };
    },
  };
}
